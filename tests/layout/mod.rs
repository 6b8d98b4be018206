//! Rewrites of real tables on a real file system, beside other writers and through faults.

mod faults;
mod metadata;
mod planning;
mod protected;
mod spark_tables;
mod strategy;
mod writers;
