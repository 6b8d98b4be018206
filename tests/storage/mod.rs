//! Lakes in object stores. Most of it runs against a real S3 server that the variable
//! `LAKEBED_S3_SERVER` names; `.ci/run` starts one, as CONTRIBUTING.md says.

mod bucket;
mod commits;
mod errors;
mod logs;
mod proxy;
mod server;
