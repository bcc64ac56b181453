module tutti.org/tutti

go 1.19
