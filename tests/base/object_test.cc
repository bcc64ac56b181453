// SPDX-License-Identifier: Apache-2.0
#include "base/object.h"

#include <thread>
#include <vector>

#include "testing.h"

namespace object_test {

using namespace tutti::impl::base;

namespace {

int living = 0;

struct Animal : Object {
  Animal() { ++living; }
  ~Animal() override { --living; }
};
struct Dog : Animal {
  explicit Dog(int age) : age(age) {}
  int age;
};

void references_count(void **) {
  Ref<Dog> dog = make_ref<Dog>(3);
  assert_int_equal(dog->reference_count(), 1);
  Ref<Animal> animal = dog;
  Ref<const Animal> lent = animal;
  assert_int_equal(dog->reference_count(), 3);
  assert_true(animal == dog);
  Ref<Dog> again = static_ref_cast<Dog>(std::move(animal));
  assert_true(animal == nullptr);
  assert_int_equal(again->age, 3);
  again = again;
  again = std::move(dog);
  lent.reset();
  assert_int_equal(again->reference_count(), 1);
  Dog *raw = again.release();
  assert_true(raw->try_ref());
  raw->unref();
  Ref<Dog>::adopt(raw).reset();
  assert_int_equal(living, 0);
  assert_false(static_cast<bool>(Ref<Dog>::share(nullptr)));
}

void threads_share(void **) {
  Ref<Dog> dog = make_ref<Dog>(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([dog] {
      for (int i = 0; i < 10000; ++i) {
        Ref<Animal> copy = dog;
        Ref<Animal> moved = std::move(copy);
      }
    });
  }
  dog.reset();
  for (std::thread &thread : threads)
    thread.join();
  assert_int_equal(living, 0);
}

const CMUnitTest tests[] = {cmocka_unit_test(references_count), cmocka_unit_test(threads_share)};

}  // namespace

TEST_MAIN(tests)

}  // namespace object_test
