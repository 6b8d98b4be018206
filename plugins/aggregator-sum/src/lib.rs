//! Sums one column per group.
//!
//! Nulls are skipped; a group without a value is null. Integers are summed with their carries and
//! checked when they leave, so the outcome does not depend on the order of the rows: a sum that fits
//! 64 bits is found even if it strayed beyond on the way, and one that does not is an error that names
//! the group. Doubles are added in the order of the rows; NaN and infinities are data and propagate.
//!
//! A partial integer state is two columns, low and carries, of the sum low + carries · 2⁶⁴; a partial
//! double state is one.
//!
//! Worked example: 2⁶³ − 1 and 1 wrap to low −2⁶³ with carry 1: −2⁶³ + 2⁶⁴ = 2⁶³, which does not fit.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::{format, vec, vec::Vec};

use lakebed_guest::{
    Bits, Column, ColumnType, NoSettings, Plugin, PluginError, Values,
    aggregator::{Accumulator, Aggregator, EmitTo, Signature},
    kernels,
};

#[derive(Debug)]
struct Sum;

impl Plugin for Sum {
    const NAME: &'static str = "sum";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "Sum of one s64 or f64 column; nulls are skipped, and an integer sum \
        beyond 64 bits is an error. No settings.";
    type Settings = NoSettings;

    fn configure(_: NoSettings) -> Result<Self, PluginError> {
        Ok(Self)
    }
}

impl Aggregator for Sum {
    type Accumulator = Sums;

    fn describe_fold(&self, inputs: &[ColumnType]) -> Result<Signature, PluginError> {
        match inputs {
            [ColumnType::S64] => Ok(Signature {
                state: vec![ColumnType::S64, ColumnType::S64],
                output: ColumnType::S64,
            }),
            [ColumnType::F64] => {
                Ok(Signature { state: vec![ColumnType::F64], output: ColumnType::F64 })
            }
            _ => Err(PluginError::Unsupported(format!(
                "a sum over columns of types {inputs:?}, expected one of S64 or F64"
            ))),
        }
    }

    fn open(&self, inputs: &[ColumnType]) -> Result<Sums, PluginError> {
        self.describe_fold(inputs)?;
        Ok(match inputs {
            [ColumnType::S64] => Sums::Integers(Vec::new()),
            _ => Sums::Doubles(Vec::new()),
        })
    }
}

/// The running sum of a group.
#[derive(Debug, Clone, Copy, Default)]
struct Running<T> {
    sum: T,
    any: bool,
}

/// An integer sum that may be beyond 64 bits: low + carries · 2⁶⁴.
#[derive(Debug, Clone, Copy, Default)]
struct Wide {
    low: i64,
    carries: i64,
}

impl Wide {
    #[inline]
    fn add(&mut self, value: i64) {
        let (low, wrapped) = self.low.overflowing_add(value);
        self.low = low;
        if wrapped {
            self.carries += value.signum();
        }
    }

    fn value(self) -> i128 {
        i128::from(self.low) + (i128::from(self.carries) << 64)
    }
}

/// The running sums of all groups.
#[derive(Debug)]
enum Sums {
    Integers(Vec<Running<Wide>>),
    Doubles(Vec<Running<f64>>),
}

impl Accumulator for Sums {
    fn update(
        &mut self,
        arguments: &[Column],
        groups: &[u32],
        filter: Option<Bits<'_>>,
        total_groups: usize,
    ) -> Result<(), PluginError> {
        let [column] = arguments else {
            return Err(PluginError::InvalidInput(format!(
                "{} arguments, expected 1",
                arguments.len()
            )));
        };
        let both = both(column.validity(groups.len()), filter);
        let taken = both.as_deref().and_then(|bytes| Bits::new(bytes, groups.len()));
        match (self, &column.values) {
            (Self::Integers(sums), Values::S64(values)) => {
                grow(sums, total_groups);
                kernels::for_each_row(groups, values, taken, |group, value| {
                    let running = &mut sums[group];
                    running.sum.add(value);
                    running.any = true;
                });
                Ok(())
            }
            (Self::Doubles(sums), Values::F64(values)) => {
                grow(sums, total_groups);
                add_doubles(sums, groups, values, taken);
                Ok(())
            }
            (_, other) => Err(PluginError::InvalidInput(format!(
                "an argument of type {:?}, expected the type the sum was opened with",
                other.column_type()
            ))),
        }
    }

    fn merge(
        &mut self,
        state: &[Column],
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), PluginError> {
        match (self, state) {
            (
                Self::Integers(sums),
                [
                    Column { values: Values::S64(low), validity },
                    Column { values: Values::S64(carries), .. },
                ],
            ) => {
                grow(sums, total_groups);
                let parts: Vec<(i64, i64)> =
                    low.iter().copied().zip(carries.iter().copied()).collect();
                let taken = validity.as_deref().and_then(|bytes| Bits::new(bytes, groups.len()));
                kernels::for_each_row(groups, &parts, taken, |group, (low, carries)| {
                    let running = &mut sums[group];
                    running.sum.add(low);
                    running.sum.carries += carries;
                    running.any = true;
                });
                Ok(())
            }
            (Self::Doubles(sums), [column @ Column { values: Values::F64(values), .. }]) => {
                grow(sums, total_groups);
                add_doubles(sums, groups, values, column.validity(groups.len()));
                Ok(())
            }
            _ => Err(PluginError::InvalidInput("the state is not that of this sum".into())),
        }
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<Column>, PluginError> {
        Ok(match self {
            Self::Integers(sums) => {
                let taken = take(sums, emit);
                let column = |part: fn(Wide) -> i64| Column {
                    values: Values::S64(taken.iter().map(|running| part(running.sum)).collect()),
                    validity: validity(&taken),
                };
                vec![column(|sum| sum.low), column(|sum| sum.carries)]
            }
            Self::Doubles(sums) => vec![doubles(&take(sums, emit))],
        })
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<Column, PluginError> {
        match self {
            Self::Doubles(sums) => Ok(doubles(&take(sums, emit))),
            Self::Integers(sums) => {
                let taken = take(sums, emit);
                let mut values = Vec::with_capacity(taken.len());
                for (group, running) in taken.iter().enumerate() {
                    let Wide { low, carries } = running.sum;
                    if carries != 0 {
                        return Err(PluginError::InvalidInput(format!(
                            "the sum of group {group} is {}, expected at most 64 bits",
                            running.sum.value()
                        )));
                    }
                    values.push(low);
                }
                Ok(Column { values: Values::S64(values), validity: validity(&taken) })
            }
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Integers(sums) => sums.capacity() * size_of::<Running<Wide>>(),
            Self::Doubles(sums) => sums.capacity() * size_of::<Running<f64>>(),
        }
    }
}

fn add_doubles(sums: &mut [Running<f64>], groups: &[u32], values: &[f64], taken: Option<Bits<'_>>) {
    kernels::for_each_row(groups, values, taken, |group, value| {
        let running = &mut sums[group];
        running.sum += value;
        running.any = true;
    });
}

/// Joins two bitmaps of rows to take; `None` takes all.
fn both(validity: Option<Bits<'_>>, filter: Option<Bits<'_>>) -> Option<Vec<u8>> {
    let (first, second) = match (validity, filter) {
        (Some(validity), filter) => (validity, filter),
        (None, Some(filter)) => (filter, None),
        (None, None) => return None,
    };
    let mut taken = first.bytes().to_vec();
    if let Some(second) = second {
        kernels::and(&mut taken, second);
    }
    Some(taken)
}

fn grow<T: Copy + Default>(sums: &mut Vec<Running<T>>, total_groups: usize) {
    if sums.len() < total_groups {
        sums.resize(total_groups, Running::default());
    }
}

fn take<T>(sums: &mut Vec<T>, emit: EmitTo) -> Vec<T> {
    match emit {
        EmitTo::All => core::mem::take(sums),
        EmitTo::First(count) => sums.drain(..sums.len().min(count as usize)).collect(),
    }
}

fn doubles(taken: &[Running<f64>]) -> Column {
    Column {
        values: Values::F64(taken.iter().map(|running| running.sum).collect()),
        validity: validity(taken),
    }
}

/// Returns the bitmap of groups that have a value; `None` when all have.
fn validity<T: Copy>(taken: &[Running<T>]) -> Option<Vec<u8>> {
    if taken.iter().all(|running| running.any) {
        None
    } else {
        Some(kernels::pack(taken, |running| running.any))
    }
}

lakebed_guest::export_aggregator!(Sum);
