# SPDX-License-Identifier: Apache-2.0
"""What the word plateau of scenarios.txt makes of the learning rate, for training_oracle.py and loop_scenarios.py, without the
library: a value that is checked every few steps is to improve, or the rate is reduced.
"""
import math


class Plateau:
    """plateau METRIC HIGHER EVERY PATIENCE COOLDOWN FACTOR THRESHOLD MINIMUM"""

    def __init__(self, words):
        self.metric, self.is_higher = words[0], words[1] == '1'
        self.every, self.patience, self.pause = map(int, words[2:5])
        self.reduction, self.threshold, self.minimum = map(float, words[5:8])
        self.factor, self.bad, self.resting = 1.0, 0, 0
        self.best = -math.inf if self.is_higher else math.inf

    def is_better(self, value):
        if self.is_higher:
            return value > self.best * (1 + self.threshold)
        return value < self.best * (1 - self.threshold)

    def after(self, step, value):
        """Of a step, counted from 1, that had this value."""
        if step % self.every != 0:
            return
        if self.is_better(value):
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.resting > 0:
            self.resting, self.bad = self.resting - 1, 0
        if self.bad > self.patience:
            self.factor = max(self.factor * self.reduction, min(self.factor, self.minimum))
            self.bad, self.resting = 0, self.pause
