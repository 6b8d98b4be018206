//! Rewrites of real tables on a real file system, beside other writers and through faults.

mod answers;
mod checkpoints;
mod complex_keys;
mod crowd;
mod cuts;
mod deletes;
mod faults;
mod kept;
#[cfg(unix)]
mod kill;
mod memory;
mod metadata;
mod model;
mod peers;
mod planning;
mod protected;
mod shapes;
mod spark_tables;
mod statements;
mod statistics;
mod strategy;
mod vacuum;
mod writers;
mod writes;
