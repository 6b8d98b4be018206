//! The time window: which statements count.

use lakebed_model::{Instant, Window};

use crate::source::Statement;

/// Which stretch of a history counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    /// How long it is; `None` has no beginning.
    pub(crate) length_ms: Option<u64>,
    /// How long before the newest statement it ends.
    pub(crate) slide_ms: u64,
}

/// Drops the statements that started outside the span and returns how many those were.
///
/// The newest statement is the reference, not the wall clock: the same log gives the same
/// workload on every day.
pub(crate) fn keep(statements: &mut Vec<Statement>, span: Span) -> u64 {
    let Some(newest) = statements.iter().map(|s| s.record.started_at).max() else { return 0 };
    let before =
        |epoch_ms: i64, ms: u64| epoch_ms.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX));
    let end = before(newest.epoch_ms(), span.slide_ms);
    let start = span.length_ms.map_or(i64::MIN, |length_ms| before(end, length_ms));
    let all = statements.len();
    statements.retain(|statement| (start..=end).contains(&statement.record.started_at.epoch_ms()));
    u64::try_from(all - statements.len()).unwrap_or(u64::MAX)
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
    use super::{Span, Window, keep, span};
    use crate::source::tests::statement_at;
    use lakebed_model::Instant;

    #[track_caller]
    fn check(length_ms: Option<u64>, slide_ms: u64, expected: &[i64]) {
        let mut statements: Vec<_> = [100, 50, 39, 40].map(statement_at).into_iter().collect();
        let dropped = keep(&mut statements, Span { length_ms, slide_ms });
        let kept: Vec<i64> = statements.iter().map(|s| s.record.started_at.epoch_ms()).collect();
        assert_eq!(kept, expected);
        assert_eq!(dropped, 4 - expected.len() as u64);
    }

    #[test]
    fn a_window_counts_back_from_the_newest_statement() {
        check(Some(60), 0, &[100, 50, 40]);
        check(Some(0), 0, &[100]);
        check(None, 0, &[100, 50, 39, 40]);
    }

    #[test]
    fn a_window_slides_back() {
        check(Some(10), 50, &[50, 40]);
        check(None, 60, &[39, 40]);
        check(Some(10), 1_000, &[]);
    }

    #[test]
    fn a_span_reaches_from_the_first_to_the_last_start() {
        let statements = [100, 40, 50].map(statement_at);
        assert_eq!(
            span(&statements),
            Window { from: Instant::from_epoch_ms(40), to: Instant::from_epoch_ms(100) }
        );
    }

    #[test]
    fn an_empty_history_has_an_empty_window() {
        let mut none = Vec::new();
        assert_eq!(keep(&mut none, Span { length_ms: Some(1), slide_ms: 1 }), 0);
        assert_eq!(span(&none), Window::default());
    }
}
