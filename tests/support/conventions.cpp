// C++ allocators for tests/spec/fuzz/test_fuzz_conventions.py: correct ones, and others of which each does one thing wrong.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <vector>

#include "fuzz_target.hpp"

// libstdc++ rounds a size near SIZE_MAX up to a multiple of the alignment, which is 0, and serves that.
static void *from_new(std::size_t size, std::size_t alignment) {
    if (size > PTRDIFF_MAX) throw std::bad_alloc();
    return std::pmr::new_delete_resource()->allocate(size, alignment);
}

// Forwards to operator new; the others are made of it.
class Good : public std::pmr::memory_resource {
protected:
    void *do_allocate(std::size_t size, std::size_t alignment) override {
        return from_new(size, alignment);
    }
    void do_deallocate(void *block, std::size_t size, std::size_t alignment) override {
        std::pmr::new_delete_resource()->deallocate(block, size, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return dynamic_cast<const Good *>(&other) != nullptr;
    }
};
SYNCEDMEM_RESOURCE(good, new Good())

// Frees only its own blocks, and says so.
class Own : public std::pmr::memory_resource {
    std::set<void *> blocks;

protected:
    void *do_allocate(std::size_t size, std::size_t alignment) override {
        void *block = from_new(size, alignment);
        blocks.insert(block);
        return block;
    }
    void do_deallocate(void *block, std::size_t size, std::size_t alignment) override {
        if (!blocks.erase(block)) throw std::logic_error("this block is of another resource");
        std::pmr::new_delete_resource()->deallocate(block, size, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }
};
SYNCEDMEM_RESOURCE(own, new Own())

// Compares only the types, but frees only its own blocks.
class TypesAlone : public Own {
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return dynamic_cast<const TypesAlone *>(&other) != nullptr;
    }
};
SYNCEDMEM_RESOURCE(types, new TypesAlone())

// Is not equal to itself.
class Unequal : public Good {
    bool do_is_equal(const std::pmr::memory_resource &) const noexcept override { return false; }
};
SYNCEDMEM_RESOURCE(unequal, new Unequal())

// Of two, only the one that was made later is equal to the other.
class Lopsided : public Good {
    static inline int made = 0;
    int number = ++made;
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return number >= static_cast<const Lopsided &>(other).number;
    }
};
SYNCEDMEM_RESOURCE(lopsided, new Lopsided())

// Refuses with an exception that does not mean out of memory.
class Throwing : public Good {
    void *do_allocate(std::size_t size, std::size_t alignment) override {
        if (size > 2048) throw std::length_error("larger than 2048 bytes");
        return Good::do_allocate(size, alignment);
    }
};
SYNCEDMEM_RESOURCE(throwing, new Throwing())
class Odd : public Good {
    void *do_allocate(std::size_t size, std::size_t alignment) override {
        if (size > 2048) throw 7;
        return Good::do_allocate(size, alignment);
    }
};
SYNCEDMEM_RESOURCE(odd, new Odd())
class Unmade : public Good {
public:
    Unmade() { throw std::runtime_error("no device"); }
};
SYNCEDMEM_RESOURCE(unmade, new Unmade())

// The shape of KuiperLLama's DeviceAllocator: correct.
class Device {
public:
    virtual ~Device() = default;
    virtual void *allocate(std::size_t size) const { return size ? std::malloc(size) : nullptr; }
    virtual void release(void *block) const { std::free(block); }
};
SYNCEDMEM_DEVICE_ALLOCATOR(device, new Device())

// A pool in that shape, with two lists of buffers, and two defects of KuiperLLama's pool: a release finds nothing while
// there is no small buffer, and a request for zero bytes gets any idle buffer.
class Pool {
    struct Buffer {
        void *at;
        std::size_t size;
        bool busy;
    };
    std::vector<Buffer> small_ones, large_ones;
    static constexpr std::size_t limit = 1 << 20;

protected:
    bool finds_large_alone = false, keeps_zero = false;

public:
    ~Pool() {
        for (auto *list : {&small_ones, &large_ones})
            for (auto &it : *list) std::free(it.at);
    }
    void *allocate(std::size_t size) {
        if (!size && !keeps_zero) return nullptr;
        auto &list = size < limit ? small_ones : large_ones;
        for (auto &it : list) {
            bool fits = size < limit ? it.size >= size : it.size >= size && it.size - size < limit;
            if (!it.busy && fits) {
                if (size) it.busy = true;
                return it.at;
            }
        }
        void *at = std::malloc(size ? size : 1);
        if (at) list.push_back({at, size, true});
        return at;
    }
    void release(void *block) {
        if (finds_large_alone && small_ones.empty()) return;
        for (auto *list : {&small_ones, &large_ones})
            for (auto &it : *list)
                if (it.at == block) it.busy = false;
    }
};
SYNCEDMEM_DEVICE_ALLOCATOR(pool, new Pool())

class Forgets : public Pool {
public:
    Forgets() { finds_large_alone = true; }
};
SYNCEDMEM_DEVICE_ALLOCATOR(forgets, new Forgets())

class Shares : public Pool {
public:
    Shares() { keeps_zero = true; }
};
SYNCEDMEM_DEVICE_ALLOCATOR(shares, new Shares())
