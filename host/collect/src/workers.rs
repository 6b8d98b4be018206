//! Many pieces of work on a few threads.

use std::{
    num::NonZeroUsize,
    panic::resume_unwind,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, Builder},
};

/// Plans are read recursively, as deep as the readers allow.
const STACK_BYTES: usize = 16 << 20;

/// Works on the items with so many threads and returns the results in the order of the items.
///
/// Where no thread can be started, fewer do the work; the calling thread is one of them.
pub(crate) fn in_order<T: Sync, R: Send>(
    items: &[T],
    threads: NonZeroUsize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    let worker = || {
        while let Some((index, item)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).map(|item| (index, item))
        } {
            let result = work(item);
            results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
        }
    };
    let span = tracing::Span::current();
    thread::scope(|scope| {
        let more = threads.get().min(items.len()).saturating_sub(1);
        let spawned: Vec<_> = (0..more)
            .map_while(|_| {
                let builder = Builder::new().name("collect".to_owned()).stack_size(STACK_BYTES);
                builder.spawn_scoped(scope, || span.in_scope(worker)).ok()
            })
            .collect();
        worker();
        for thread in spawned {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().map(|result| result.expect("every item was worked on")).collect()
}

#[cfg(test)]
mod tests {
    use super::{NonZeroUsize, in_order};

    #[test]
    fn results_come_in_the_order_of_the_items_whatever_the_threads() {
        let items: Vec<u64> = (0..500).collect();
        let expected: Vec<u64> = items.iter().map(|item| item * item).collect();
        for threads in [1, 2, 7, 600] {
            let threads = NonZeroUsize::new(threads).unwrap();
            assert_eq!(in_order(&items, threads, |item| item * item), expected);
        }
        let none: [u64; 0] = [];
        assert!(in_order(&none, NonZeroUsize::MIN, |item| *item).is_empty());
    }

    #[test]
    #[should_panic(expected = "third")]
    fn a_panic_of_the_work_is_the_callers() {
        in_order(&[1, 2, 3, 4], NonZeroUsize::new(3).unwrap(), |item| {
            assert!(*item != 3, "third");
        });
    }
}
