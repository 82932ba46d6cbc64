//! The thread that reads and writes the sockets of a process.

use std::{io, thread};

use tokio::{runtime::Handle, sync::oneshot};

/// The thread that reads and writes the sockets of a process. All that runs on it ends when it is
/// dropped.
pub(crate) struct IoThread {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl IoThread {
    /// Starts it.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            // A sender that was dropped says the same.
            drop(runtime.block_on(stopped));
        };
        let thread = thread::Builder::new().name("regrow-net".to_owned()).spawn(serve)?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Where to spawn what reads and writes sockets.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was logged; nothing is left to be done about it.
            drop(thread.join());
        }
    }
}
