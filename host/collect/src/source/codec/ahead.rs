//! Decompresses on a thread of its own, a few blocks ahead of the reader.

use std::{
    io::{self, Read},
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread,
};

use super::Decoded;

const BLOCK_BYTES: usize = 1 << 20;
/// Blocks that wait to be read.
const BLOCKS_AHEAD: usize = 3;

/// The reading end.
#[derive(Debug)]
pub(in crate::source) struct Ahead {
    filled: Receiver<io::Result<Vec<u8>>>,
    used: Sender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

impl Ahead {
    /// Starts the thread; without one the stream is read as it is.
    pub(in crate::source) fn of(decoded: Decoded) -> Decoded {
        let (filled, filled_end) = sync_channel(BLOCKS_AHEAD);
        let (used, used_end) = channel();
        // The stream must come back when there is no thread for it.
        let (hand, hand_end) = channel::<Decoded>();
        let work = move || {
            if let Ok(decoded) = hand_end.recv() {
                decompress(decoded, &filled, &used_end);
            }
        };
        match thread::Builder::new().name("decompress".to_owned()).spawn(work) {
            Ok(_) => match hand.send(decoded) {
                Ok(()) => Box::new(Self { filled: filled_end, used, block: Vec::new(), at: 0 }),
                Err(unsent) => unsent.0,
            },
            Err(_) => decoded,
        }
    }
}

/// Runs until the stream ends or nobody reads any more. Damage is passed on and gone beyond.
fn decompress(
    mut decoded: Decoded,
    filled: &SyncSender<io::Result<Vec<u8>>>,
    used: &Receiver<Vec<u8>>,
) {
    loop {
        let mut block = used.try_recv().unwrap_or_default();
        block.resize(BLOCK_BYTES, 0);
        let mut size = 0;
        let mut end = None;
        while size < BLOCK_BYTES && end.is_none() {
            match decoded.read(&mut block[size..]) {
                Ok(0) => end = Some(None),
                Ok(count) => size += count,
                Err(error) => end = Some(Some(error)),
            }
        }
        block.truncate(size);
        if size > 0 && filled.send(Ok(block)).is_err() {
            return;
        }
        let told = match end {
            Some(None) => return,
            Some(Some(error)) => filled.send(Err(error)),
            None => Ok(()),
        };
        if told.is_err() {
            return;
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            match self.filled.recv() {
                Ok(Ok(block)) => {
                    let old = std::mem::replace(&mut self.block, block);
                    self.at = 0;
                    // The thread may be gone already; then the block is simply dropped.
                    let _ = self.used.send(old);
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => return Ok(0),
            }
        }
        let count = out.len().min(self.block.len() - self.at);
        out[..count].copy_from_slice(&self.block[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
