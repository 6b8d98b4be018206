//! The S3 server, and buckets there: spoken to in bare HTTP, so that what the lake wrote is looked at
//! by somebody else.

use std::{
    fmt::Write as _,
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use tempfile::TempDir;

use crate::support::{Run, lakebed, text_from};

/// The variable that names the server.
const VARIABLE: &str = "LAKEBED_S3_SERVER";
pub(super) const SECRET: &str = "a-secret-that-no-message-shows";

/// Finds the server; without one, says that a test is skipped.
pub(super) fn server(test: &str) -> Option<String> {
    let found = text_from(VARIABLE);
    if found.is_none() {
        // What the print macros write, the harness keeps to itself when a test passes.
        let text = format!("SKIPPED {test}: {VARIABLE} names no S3 server, see CONTRIBUTING.md\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    found
}

/// The server checks that there is one, not whether it is right.
const SIGNATURE: &str = "AWS4-HMAC-SHA256 \
    Credential=testing/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

/// The answer to a request.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Sends a request to a server at `http://host:port`; the path is percent-encoded.
#[track_caller]
pub(super) fn request(server: &str, method: &str, path: &str, body: &[u8]) -> Answer {
    let host = server.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).expect("the server listens");
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Authorization: {SIGNATURE}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("a request");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok());
    Answer { status: status.expect("a status"), body: bytes[end + 4..].to_vec() }
}

/// Writes the configuration that reaches a server.
pub(super) fn configure(folder: &Path, server: &str, more: &str) {
    let text = format!(
        "[storage]\naws_endpoint = \"{server}\"\naws_region = \"us-east-1\"\n\
         aws_access_key_id = \"testing\"\naws_secret_access_key = \"{SECRET}\"\n{more}"
    );
    fs::write(folder.join("lakebed.toml"), text).expect("a configuration");
}

/// A bucket of the server, and a folder whose configuration reaches it.
pub(super) struct Bucket {
    pub(super) server: String,
    pub(super) name: String,
    pub(super) folder: TempDir,
}

impl Bucket {
    #[track_caller]
    pub(super) fn create(server: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("bucket").tempdir().expect("a folder");
        let random = folder.path().file_name().expect("a name").to_string_lossy().to_lowercase();
        configure(folder.path(), server, "");
        let bucket = Self { server: server.to_owned(), name: random, folder };
        let made = request(server, "PUT", &format!("/{}", bucket.name), b"");
        assert_eq!(made.status, 200, "{}", String::from_utf8_lossy(&made.body));
        bucket
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("s3://{}/{path}", self.name)
    }

    /// Runs the command with the lake `lake/` of the bucket.
    #[track_caller]
    pub(super) fn run(&self, arguments: &[&str]) -> Run {
        let lake = self.url("lake");
        let mut all = vec!["--lake", lake.as_str()];
        all.extend(arguments);
        lakebed(self.folder.path(), &all)
    }

    #[track_caller]
    pub(super) fn sql(&self, statements: &[&str]) -> Run {
        let mut arguments = vec!["--json", "sql"];
        arguments.extend(statements);
        self.run(&arguments)
    }

    /// Lists the keys under a prefix.
    #[track_caller]
    pub(super) fn keys(&self, prefix: &str) -> Vec<String> {
        let path = format!("/{}?list-type=2&prefix={}", self.name, encoded(prefix));
        let answer = request(&self.server, "GET", &path, b"");
        let text = String::from_utf8(answer.body).expect("XML is UTF-8");
        assert!(text.contains("<IsTruncated>false<"), "more than a page: {text}");
        let keys = text.split("<Key>").skip(1);
        keys.map(|rest| rest.split("</Key>").next().unwrap_or_default().replace("&amp;", "&"))
            .collect()
    }

    #[track_caller]
    pub(super) fn get(&self, key: &str) -> Vec<u8> {
        let answer = request(&self.server, "GET", &self.path(key), b"");
        assert_eq!(answer.status, 200, "{key}");
        answer.body
    }

    #[track_caller]
    pub(super) fn put(&self, key: &str, body: &[u8]) {
        let answer = request(&self.server, "PUT", &self.path(key), body);
        assert_eq!(answer.status, 200, "{key}");
    }

    fn path(&self, key: &str) -> String {
        format!("/{}/{}", self.name, encoded(key))
    }
}

/// Encodes all but letters, digits and what is harmless in a path.
pub(super) fn encoded(text: &str) -> String {
    let mut path = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => {
                path.push(char::from(byte));
            }
            byte => write!(path, "%{byte:02X}").expect("a string takes all"),
        }
    }
    path
}
