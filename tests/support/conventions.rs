// Rust allocators for tests/spec/fuzz/test_fuzz_conventions.py: a correct one, and others of which each does one thing wrong.
include!("fuzz_target.rs");

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::copy_nonoverlapping;

syncedmem_fuzz_target!("good", System, System);

/// Does not pass the alignment on.
struct Crooked;
unsafe impl GlobalAlloc for Crooked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        System.alloc(Layout::from_size_align_unchecked(layout.size(), 16))
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, Layout::from_size_align_unchecked(layout.size(), 16))
    }
}
syncedmem_fuzz_target!("crooked", Crooked, Crooked);

/// Takes memory as zero that is not new.
struct Dirty;
unsafe impl GlobalAlloc for Dirty {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, layout)
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        System.alloc(layout)
    }
}
syncedmem_fuzz_target!("dirty", Dirty, Dirty);

/// Copies a byte too few when it moves.
struct Moving;
unsafe impl GlobalAlloc for Moving {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, layout)
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let moved = System.alloc(Layout::from_size_align_unchecked(size, layout.align()));
        if !moved.is_null() {
            copy_nonoverlapping(block, moved, layout.size().min(size) - 1);
            System.dealloc(block, layout);
        }
        moved
    }
}
syncedmem_fuzz_target!("moving", Moving, Moving);
