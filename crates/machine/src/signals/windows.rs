//! What a console tells its programs, and what the service manager tells its services. Nobody says who
//! asked. There is no signal for reading the configuration again or for starting again: `talaria reload`
//! and `talaria restart` do it through the door.

use std::io;

use futures::stream::{self, BoxStream, StreamExt};
use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, CtrlShutdown};
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

use super::{Heard, Nudge, Wish};
use crate::service::{self, Orders};

pub(super) struct Source {
    interrupt: CtrlC,
    break_key: CtrlBreak,
    // Windows ends the process some seconds after these, whatever it does.
    close: CtrlClose,
    shutdown: CtrlShutdown,
    orders: Orders,
}

impl Source {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            break_key: ctrl_break()?,
            close: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
            orders: service::orders(),
        })
    }

    pub(super) async fn next(&mut self) -> Heard {
        let name = tokio::select! {
            Some(()) = self.interrupt.recv() => "Ctrl-C",
            Some(()) = self.break_key.recv() => "Ctrl-Break",
            Some(()) = self.close.recv() => "its window was closed",
            Some(()) = self.shutdown.recv() => "the machine is shut down",
            name = self.orders.next() => name,
        };
        Heard { wish: Wish::End(name), sender: None }
    }
}

pub(super) fn nudge(kind: Nudge) -> io::Result<Vec<BoxStream<'static, ()>>> {
    let streams = match kind {
        Nudge::Interrupt => {
            let interrupts = stream::unfold(ctrl_c()?, |mut coming| async move {
                coming.recv().await.map(|()| ((), coming))
            });
            let breaks = stream::unfold(ctrl_break()?, |mut coming| async move {
                coming.recv().await.map(|()| ((), coming))
            });
            vec![interrupts.boxed(), breaks.boxed()]
        }
        Nudge::Terminate => {
            let shutdowns = stream::unfold(ctrl_shutdown()?, |mut coming| async move {
                coming.recv().await.map(|()| ((), coming))
            });
            vec![shutdowns.boxed()]
        }
        Nudge::Hangup => {
            let closes = stream::unfold(ctrl_close()?, |mut coming| async move {
                coming.recv().await.map(|()| ((), coming))
            });
            vec![closes.boxed()]
        }
    };
    Ok(streams)
}
