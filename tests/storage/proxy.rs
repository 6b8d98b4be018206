//! A server in between, which does to single requests what networks and odd servers do.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

/// A request as it came.
pub(super) struct Request {
    pub(super) method: String,
    /// With its query.
    pub(super) path: String,
    head: Vec<String>,
    body: Vec<u8>,
}

/// What becomes of a request.
pub(super) enum Fate {
    /// The server behind gets it and its answer comes back.
    Passed,
    /// As [`Fate::Passed`], without a header.
    Without(&'static str),
    /// The server behind gets it, and the connection ends without an answer.
    Unanswered,
    /// The server behind gets it, and another answer comes back.
    Overruled(&'static str, &'static str),
    /// The server behind does not get it, and this is the answer: status line and body.
    Answered(&'static str, &'static str),
}

/// Starts a server that decides over each request; returns its URL. It ends with the test's process.
pub(super) fn start(
    behind: Option<&str>,
    decide: impl Fn(&Request) -> Fate + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let behind = behind.map(|url| url.trim_start_matches("http://").to_owned());
    let decide = Arc::new(decide);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (behind, decide) = (behind.clone(), Arc::clone(&decide));
            // Whoever hangs up early gets no answer.
            thread::spawn(move || serve(stream, behind.as_deref(), decide.as_ref()));
        }
    });
    format!("http://{address}")
}

fn serve(
    mut stream: TcpStream,
    behind: Option<&str>,
    decide: &dyn Fn(&Request) -> Fate,
) -> Option<()> {
    let request = read(&mut stream)?;
    let answer = match decide(&request) {
        Fate::Passed => forward(&request, behind?, None)?,
        Fate::Without(header) => forward(&request, behind?, Some(header))?,
        Fate::Unanswered => {
            forward(&request, behind?, None)?;
            return None;
        }
        Fate::Overruled(status, body) => {
            forward(&request, behind?, None)?;
            rendered(status, body)
        }
        Fate::Answered(status, body) => rendered(status, body),
    };
    stream.write_all(&answer).ok()
}

fn rendered(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut buffer).ok()? {
            0 => return None,
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    };
    let text = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = text.split("\r\n").map(ToOwned::to_owned);
    let first = lines.next()?;
    let mut words = first.split(' ').map(ToOwned::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let head: Vec<String> = lines.collect();
    let length = head.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length.unwrap_or(0) {
        match stream.read(&mut buffer).ok()? {
            0 => return None,
            count => body.extend_from_slice(&buffer[..count]),
        }
    }
    Some(Request { method, path, head, body })
}

/// Sends a request on and reads the whole answer.
fn forward(request: &Request, behind: &str, without: Option<&str>) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(behind).ok()?;
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    for line in &request.head {
        let name = line.split(':').next().unwrap_or_default();
        let is_left_out = name.eq_ignore_ascii_case("connection")
            || without.is_some_and(|header| name.eq_ignore_ascii_case(header));
        if !is_left_out {
            head.push_str(line);
            head.push_str("\r\n");
        }
    }
    head.push_str("Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&request.body)).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(answer)
}
