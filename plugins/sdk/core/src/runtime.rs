//! What `std` would have brought: an allocator, memory for arguments, and an end for panics.

use alloc::alloc::{Layout, alloc, realloc};
use core::{arch::wasm32, panic::PanicInfo};

// The compiler calls `memcmp` and its like, which on this target live in the toolchain's libc. The
// linker takes these few functions and nothing that would import.
#[link(name = "c")]
unsafe extern "C" {}

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// Traps. The message is lost, because a plugin has nowhere to write it; the host reports the frames.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    wasm32::unreachable()
}

/// Gives the host the memory that it writes arguments to, as the canonical ABI asks. The bindings
/// free it with the global allocator, so it has to come from there, and not from libc's own
/// `cabi_realloc`.
///
/// # Safety
/// `old` is null with `old_bytes` 0, or was returned by this function with these bytes and alignment;
/// `align` is a power of two.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cabi_realloc(
    old: *mut u8,
    old_bytes: usize,
    align: usize,
    new_bytes: usize,
) -> *mut u8 {
    if new_bytes == 0 {
        return core::ptr::without_provenance_mut(align);
    }
    // SAFETY: the caller keeps the contract above, which is that of the global allocator; sizes come
    // from the host, which has checked them against the memory's.
    let memory = unsafe {
        if old_bytes == 0 {
            alloc(Layout::from_size_align_unchecked(new_bytes, align))
        } else {
            realloc(old, Layout::from_size_align_unchecked(old_bytes, align), new_bytes)
        }
    };
    if memory.is_null() { wasm32::unreachable() } else { memory }
}
