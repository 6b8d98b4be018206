//! Object stores that say no, or nothing: what the user reads, and how it ends.

use std::fs;

use super::{
    proxy::{self, Fate},
    server::{Bucket, SECRET, configure, server},
};
use crate::support::{Run, command_line, lakebed, lakebed_with};

const SELECT: [&str; 5] = [
    "--json",
    "-vv",
    "sql",
    "SELECT * FROM delta.`s3://bucket/t`",
    "OPTIMIZE delta.`s3://bucket/t`",
];

/// Runs a statement against a server and checks that no secret shows.
#[track_caller]
fn run(server: &str, more: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), server, more);
    let run = lakebed(folder.path(), &SELECT);
    assert!(!run.stderr.contains(SECRET) && !run.stdout.contains(SECRET), "{}", run.stderr);
    run
}

#[track_caller]
fn check(run: &Run, code: i32, parts: &[&str]) {
    assert_eq!(run.code, code, "{}", run.stderr);
    for part in parts {
        assert!(run.stderr.contains(part), "no `{part}` in: {}", run.stderr);
    }
}

/// A server that gives one answer to everything.
fn answering(status: &'static str, body: &'static str) -> String {
    proxy::start(None, move |_| Fate::Answered(status, body))
}

#[test]
fn an_endpoint_that_nobody_listens_at_is_a_transient_error_soon() {
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    check(&run(&server, ""), 4, &["failed to read table", "s3://bucket/t", "onnection refused"]);
}

#[test]
fn a_server_that_fails_is_a_transient_error() {
    let server = answering(
        "503 Slow Down",
        "<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>",
    );
    check(&run(&server, ""), 4, &["503", "SlowDown: Reduce your request rate.", "transient"]);
}

#[test]
fn an_answer_that_says_no_is_an_error_of_the_configuration() {
    let body = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
    check(
        &run(&answering("403 Forbidden", body), ""),
        2,
        &["403 Forbidden: AccessDenied: Access Denied", "check the credentials"],
    );
    let body = "<Error><Code>InvalidAccessKeyId</Code><Message>No such key</Message></Error>";
    check(&run(&answering("403 Forbidden", body), ""), 2, &["InvalidAccessKeyId"]);
}

#[test]
fn a_bucket_in_another_region_is_an_error_of_the_configuration() {
    check(&run(&answering("301 Moved Permanently", ""), ""), 2, &["region", "aws_region"]);
    let body = "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is wrong; expecting 'eu-west-1'</Message></Error>";
    check(
        &run(&answering("400 Bad Request", body), ""),
        2,
        &["expecting 'eu-west-1'", "aws_region"],
    );
}

#[test]
fn an_unknown_bucket_is_an_error_of_the_configuration() {
    let body = "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>";
    check(
        &run(&answering("404 Not Found", body), ""),
        2,
        &["NoSuchBucket", "check the bucket's name"],
    );
    if let Some(server) = server("an_unknown_bucket_is_an_error_of_the_configuration") {
        let unknown = run(&server, "");
        check(&unknown, 2, &["NoSuchBucket", "check the bucket's name"]);
    }
}

#[test]
fn an_unknown_table_in_a_bucket_is_said_to_be_none() {
    let Some(server) = server("an_unknown_table_in_a_bucket_is_said_to_be_none") else { return };
    let bucket = Bucket::create(&server);
    let run = bucket.sql(&[&format!("SELECT * FROM delta.`{}`", bucket.url("nowhere"))]);
    check(&run, 2, &["holds no Delta table"]);
}

#[test]
fn without_credentials_the_error_says_where_to_put_them() {
    let folder = tempfile::tempdir().unwrap();
    // The address where a machine of the cloud would learn who it is.
    let nobody = answering("404 Not Found", "");
    let text =
        format!("[storage]\naws_metadata_endpoint = \"{nobody}\"\naws_endpoint = \"{nobody}\"\n");
    fs::write(folder.path().join("lakebed.toml"), text).unwrap();
    check(&lakebed(folder.path(), &SELECT), 2, &["AWS_", "[storage]"]);
}

#[test]
fn a_lake_that_cannot_be_listed_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), &answering("403 Forbidden", ""), "");
    let run = lakebed(folder.path(), &["--lake", "s3://bucket/lake", "sql", "SELECT 1"]);
    check(&run, 2, &["failed to list the lake at s3://bucket/lake", "check the credentials"]);
}

#[test]
fn variables_of_the_environment_are_options_and_the_configuration_wins() {
    let no = "<Error><Code>AccessDenied</Code><Message>from the variable</Message></Error>";
    let other = "<Error><Code>AccessDenied</Code><Message>from the file</Message></Error>";
    let (variable, file) = (answering("403 Forbidden", no), answering("403 Forbidden", other));
    let folder = tempfile::tempdir().unwrap();
    let mut command = command_line(folder.path(), &SELECT);
    command.env("AWS_ENDPOINT_URL_S3", &variable).env("AWS_REGION", "eu-west-1");
    command.env("AWS_ACCESS_KEY_ID", "testing").env("AWS_SECRET_ACCESS_KEY", SECRET);
    check(&lakebed_with(&mut command), 2, &["from the variable"]);
    configure(folder.path(), &file, "");
    check(&lakebed_with(&mut command), 2, &["from the file"]);
}

#[test]
fn options_that_no_store_has_are_refused_with_their_place() {
    #[track_caller]
    fn refused(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lakebed.toml"), text).unwrap();
        lakebed(folder.path(), &["sql", "SELECT 1"]).failure()
    }
    insta::assert_snapshot!(refused("[storage]\naws_regoin = \"eu-west-1\"\n"), @r"
    exit code 2
    error: failed to read configuration `lakebed.toml` at line 2, column 1: set `aws_regoin`: there is no such option of an object store
    help: did you mean `aws_region`?
    ");
    insta::assert_snapshot!(refused("[storage.logs]\naws_region = \"eu-west-1\"\n"), @r"
    exit code 2
    error: failed to read configuration `lakebed.toml` at line 1, column 10: use options for `logs`: options belong to a bucket or a container, such as `s3://logs` or `abfss://lake@account.dfs.core.windows.net`, without a path
    help: correct the file at that place
    ");
    insta::assert_snapshot!(refused("[storage]\naws_region = [\"eu-west-1\"]\n"), @r"
    exit code 2
    error: failed to read configuration `lakebed.toml` at line 2, column 14: invalid type: sequence, expected a string, a number, true or false
    help: correct the file at that place
    ");
    insta::assert_snapshot!(refused("[tables]\nt = \"hdfs://name/t\"\n"), @r"
    exit code 2
    error: failed to open lake at `hdfs://name/t`: there is no storage `hdfs://`, expected one of file://, s3://, s3a://, gs://, abfss://, abfs://, az://, memory://
    help: give a folder or a URL such as file:///lake/orders
    ");
}
