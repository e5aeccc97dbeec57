// Exports a `GlobalAlloc`, so that `syncedmem fuzz` can call it.  In one file of yours, or in a crate of type cdylib:
//
//     include!("fuzz_target.rs");
//     syncedmem_fuzz_target!("mine", MyAllocator, MyAllocator::new());
//
//     rustc --crate-type cdylib -C panic=abort -o libmine.so mine.rs
//     syncedmem fuzz './libmine.so:mine_*?abi=resource'
//
// Each round begins with a new allocator.  Layouts are as `Layout::from_size_align` allows them; a request for zero
// bytes is not made, because `GlobalAlloc` has none.

macro_rules! syncedmem_fuzz_target {
    ($name:literal, $type:ty, $new:expr) => {
        const _: () = {
            use std::alloc::{GlobalAlloc, Layout};
            use std::ffi::c_void;
            use std::ptr::null_mut;

            fn layout(size: usize, align: usize) -> Option<Layout> {
                Layout::from_size_align(size, align).ok().filter(|it| it.size() > 0)
            }

            unsafe fn of<'a>(allocator: *mut c_void) -> &'a $type {
                &*(allocator as *const $type)
            }

            #[export_name = concat!($name, "_make")]
            pub extern "C" fn make() -> *mut c_void {
                Box::into_raw(Box::<$type>::new($new)) as *mut c_void
            }

            #[export_name = concat!($name, "_drop")]
            pub unsafe extern "C" fn drop_it(allocator: *mut c_void) {
                drop(Box::from_raw(allocator as *mut $type));
            }

            #[export_name = concat!($name, "_allocate")]
            pub unsafe extern "C" fn allocate(allocator: *mut c_void, size: usize, align: usize) -> *mut u8 {
                layout(size, align).map_or(null_mut(), |it| of(allocator).alloc(it))
            }

            #[export_name = concat!($name, "_zeroed")]
            pub unsafe extern "C" fn zeroed(allocator: *mut c_void, size: usize, align: usize) -> *mut u8 {
                layout(size, align).map_or(null_mut(), |it| of(allocator).alloc_zeroed(it))
            }

            #[export_name = concat!($name, "_resize")]
            pub unsafe extern "C" fn resize(
                allocator: *mut c_void, block: *mut u8, old: usize, align: usize, size: usize,
            ) -> *mut u8 {
                match (layout(old, align), layout(size, align)) {
                    (Some(it), Some(_)) => of(allocator).realloc(block, it, size),
                    _ => null_mut(),
                }
            }

            #[export_name = concat!($name, "_deallocate")]
            pub unsafe extern "C" fn deallocate(allocator: *mut c_void, block: *mut u8, size: usize, align: usize) {
                if let Some(it) = layout(size, align) {
                    of(allocator).dealloc(block, it);
                }
            }
        };
    };
}
