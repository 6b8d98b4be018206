//! Rewrites of real tables on a real file system, beside other writers and through faults.

mod checkpoints;
mod crowd;
mod faults;
#[cfg(unix)]
mod kill;
mod metadata;
mod protected;
mod spark_tables;
mod vacuum;
mod writers;
