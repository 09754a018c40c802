//! The long answer.

/// Every kind of formatting that people meet, in a text that is true.
pub(super) const LONG: &str = r#"# What happens to a message

You asked for a long answer, so here is one: the way of a message through Talaria, from the moment you press *send* until the reply is on your screen. It is written by hand, not by a model, and it uses every kind of formatting that an answer may have. If you are reading this in a chat that knows less than Markdown, you see how the text was made to fit.

## The short version

A platform **translates**, a session **decides**, the gateway **carries**. Nothing else is allowed to do these things, and none of the three does the work of another. That is the whole design; the rest is details, and the details are what the following sections are about.

## Step by step

1. **The platform reads bytes.** Telegram, Slack, a browser, a terminal: each has its own way to say that somebody said something. A decoder turns these bytes into one plain value, or into nothing if it is of no interest.
2. **The gateway writes it down.** The message goes into a journal together with the platform's own cursor, in a single commit. Only then is the platform told that the message has arrived.
   - If the process dies before the commit, the platform sends the message again.
   - If it dies after the commit, the message is found in the journal at the next start.
   - A message that comes twice is recognised by its id and kept once.
3. **The session decides.** One function takes the session, an event and the time, and returns a list of effects. It asks nobody and sends nothing, which is why it can be tested in a thousand ways in a second.
4. **The agent works.** It asks a model, calls tools, asks the model again. What it writes is shown to you while it grows.
5. **The reply goes out.** Every part of it has an id that was decided before the first byte left. If the connection breaks in the middle, the part is tried again, and if it may already have arrived, it is marked.

## What is promised

| Promise | What it means for you |
|---|---|
| Nothing accepted is lost | What you wrote survives a crash, even one in the middle of an answer |
| No silent duplicates | A repeated message says that it is a repeat |
| Stop means stop | `/stop` works within a second, whatever is going on |
| Every message ends somewhere | In a reply, or in a reason that you can look up |
| One bad platform hurts nobody | If one connection fails, the others go on |
| Restarts are boring | What was running is taken up again |

> A promise that nobody can check is advertising. Each of these is a test that you can run yourself.

## What it looks like

A configuration can be this small:

```yaml
# config.yaml
model: anthropic/claude-sonnet-5

fallback:
  - openai/gpt-5.5
  - ollama/llama3.2
```

And this is the heart of the matter, a decision written as a value:

```rust
fn said(&mut self, message: Message, now: Timestamp) -> Vec<Effect> {
    match self.phase {
        Phase::Idle => self.start(vec![message], now),
        Phase::Thinking { turn, .. } => vec![Effect::Tell { turn, word: Word::Steer(message) }],
        Phase::Asking { .. } | Phase::Stopping { .. } => {
            self.waiting.push(message);
            vec![]
        }
    }
}
```

Read it aloud and you have the documentation: when nothing is going on, a message starts a turn; when the agent is thinking, the message steers it; when it is waiting for your answer or about to stop, the message waits as well.

## Things that are easy to get wrong

- **A timeout is not a failure to send.** The other side may have received everything and only the confirmation got lost. Whoever treats this as a failure answers people twice.
- **Text has more than one length.** Bytes, characters, what you see on the screen, and the units that a platform counts in are four different numbers:
  - `e` is one of each
  - `é` is two bytes
  - an emoji is often four bytes and two units of UTF-16
  - a family emoji can be *one* thing on the screen and twenty-five bytes in memory
- **Order is a promise, too.** Two messages that you send quickly one after the other are answered in that order, because each conversation has exactly one lane.
- **A stream can end without an end.** If a model's answer stops in the middle of a sentence and nobody said that it was over, then it was not over, and it is asked again.

## Where your words are kept

On your own machine, in one folder, in a database that you can copy like any other file. What you say goes to the model that you chose and to nobody else; this demo sends nothing anywhere. Full-text search is built from what is kept, and if the search index is ever damaged it is made again from the conversations themselves. You can look at everything, and you can delete it.

## A few words about formatting

Most of what you see here is *ordinary* Markdown: **bold**, *italic*, ~~struck out~~, `code`, [a link](https://commonmark.org), lists inside lists, a table, a quote, two blocks of code and a line:

---

Some platforms show all of it. Some show a part, and for those the rest is written in a way that they do understand: a table becomes lines, a heading becomes bold text, a link shows its address. And some have a limit on how long a message may be. Then an answer like this one is split, at a paragraph if possible, never inside a word, and a block of code that had to be cut is closed and opened again.

### How to see it for yourself

1. Scroll back and look at the table. Are the columns where they should be?
2. Copy the first block of code. Did you get only the code?
3. Make the window narrow. Does the text still fit?
4. Say **long** again and close the window while I am writing. Then come back.

### If something looks wrong

Please tell us which platform you use and what you saw. A picture is best. Formatting is the part of a gateway that everybody sees and nobody notices, as long as it is right.

## And now?

You have seen a long answer. I can also show you a **tool** call, **ask** you a question, or send you a **file**. Or you can connect a real model, which will have more to say than I do: set an API key in the environment, write `model:` into `config.yaml`, or start Ollama on this machine. `talaria model` tells you what was found.
"#;
