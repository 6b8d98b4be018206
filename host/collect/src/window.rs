//! The time window: which statements count.

use lakebed_model::{Instant, Window};

use crate::source::Statement;

/// Drops the statements that started more than `window_ms` before the newest one.
///
/// The newest statement is the reference, not the wall clock: the same log gives the same
/// workload on every day.
pub(crate) fn keep_last(statements: &mut Vec<Statement>, window_ms: u64) {
    let Some(newest) = statements.iter().map(|s| s.record.started_at).max() else { return };
    let oldest = newest.epoch_ms().saturating_sub(i64::try_from(window_ms).unwrap_or(i64::MAX));
    statements.retain(|statement| statement.record.started_at.epoch_ms() >= oldest);
}

/// Returns the stretch from the first to the last start.
pub(crate) fn span(statements: &[Statement]) -> Window {
    let starts = || statements.iter().map(|statement| statement.record.started_at);
    Window {
        from: starts().min().unwrap_or(Instant::from_epoch_ms(0)),
        to: starts().max().unwrap_or(Instant::from_epoch_ms(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Window, keep_last, span};
    use crate::source::tests::statement_at;
    use lakebed_model::Instant;

    #[test]
    fn a_window_counts_back_from_the_newest_statement() {
        let mut statements: Vec<_> = [100, 50, 39, 40].map(statement_at).into_iter().collect();
        keep_last(&mut statements, 60);
        let kept: Vec<i64> = statements.iter().map(|s| s.record.started_at.epoch_ms()).collect();
        assert_eq!(kept, [100, 50, 40]);
        assert_eq!(
            span(&statements),
            Window { from: Instant::from_epoch_ms(40), to: Instant::from_epoch_ms(100) }
        );
    }

    #[test]
    fn an_empty_history_has_an_empty_window() {
        let mut none = Vec::new();
        keep_last(&mut none, 1);
        assert_eq!(span(&none), Window::default());
    }
}
