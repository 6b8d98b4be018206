//! Swaps: one table gives way so that another step fits or pays.
//!
//! A climb stops where no single step gains. Often a table that was taken early stands in the way:
//! it holds the budget, or its key. So each chosen table is tried with each of its other options,
//! together with each step of other tables; the best such pair of changes is taken, then the climb
//! goes on, until no pair gains or the work is used up.

use super::{
    Problem,
    climb::{Climber, Rule, Step, Weight},
    exceeds,
};

/// How many looks at a known gain a step takes that is weighed anew.
const NEAR_WORK: u64 = 16;

/// Improves the choices that a climber stands on by swaps; weighs about so many at most.
pub(super) fn improve(problem: &Problem, climber: &mut Climber<'_>, max_work: u64) {
    let mut work = 0;
    while work < max_work {
        let Some((away, step)) = best(problem, climber, &mut work, max_work) else { return };
        climber.take(away);
        climber.take(step);
        climber.climb(Rule::Value);
    }
}

fn best(
    problem: &Problem,
    climber: &mut Climber<'_>,
    work: &mut u64,
    max_work: u64,
) -> Option<(Step, Step)> {
    let mut by_gain: Vec<(Step, Weight)> = climber.steps().collect();
    by_gain.sort_by(|a, b| b.1.gain.total_cmp(&a.1.gain));
    let mut best: Option<(f64, Step, Step)> = None;
    for table in 0..problem.tables().len() {
        let own = climber.choices[table];
        if own == 0 || *work >= max_work {
            continue;
        }
        let mut is_near = vec![false; problem.tables().len()];
        for neighbor in problem.neighbors(table) {
            is_near[neighbor.other] = true;
        }
        let near_steps = climber.steps_near(&is_near, table);
        is_near[table] = true;
        for &option in problem.live(table).iter().filter(|&&option| option != own) {
            let away = Step { first: (table, option), second: None };
            let lost = climber.weigh(away);
            let mut offer = |gain: f64, step: Step, weight: Weight, climber: &Climber<'_>| {
                let total = lost.gain + gain;
                let is_better = exceeds(total, 0.0) && best.is_none_or(|(most, ..)| total > most);
                let (rewrite, storage) =
                    (lost.rewrite + weight.rewrite, lost.storage + weight.storage);
                if is_better && climber.is_within(rewrite, storage) {
                    best = Some((total, away, step));
                }
                is_better
            };
            // Far from the table a step gains what it did.
            for &(step, weight) in &by_gain {
                *work += 1;
                if step.ends().any(|(end, _)| is_near[end]) {
                    continue;
                }
                let is_better = offer(weight.gain, step, weight, climber);
                if !is_better && lost.gain + weight.gain <= 0.0 {
                    break;
                }
            }
            // Near it, a step is weighed after the table has left.
            for &step in &near_steps {
                *work += NEAR_WORK;
                climber.choices[table] = option;
                let weight = climber.weigh(step);
                climber.choices[table] = own;
                offer(weight.gain, step, weight, climber);
            }
        }
    }
    best.map(|(_, away, step)| (away, step))
}
