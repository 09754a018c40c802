// Getting in: by the token behind `#login=` in the address, or by pasting it.

import * as api from "./api.js";
import { byId } from "./dom.js";

/** The token in a pasted link, or the text itself if it is the bare token. */
export function tokenIn(text) {
  const after = /#login=([\w-]+)/.exec(text);
  return after ? after[1] : text.trim();
}

/** Uses the token in the address, if there is one, and takes it out of the address and the history. */
export async function fromAddress() {
  const { hash, pathname } = location;
  if (!hash.startsWith("#login=")) return undefined;
  history.replaceState(null, "", pathname);
  return attempt(tokenIn(hash));
}

/** What went wrong, or nothing. */
async function attempt(token) {
  try {
    await api.login(token);
    return undefined;
  } catch (error) {
    return error.status === 401
      ? "This login link was used already or has expired. Run talaria open for a fresh one."
      : `${error.message[0].toUpperCase()}${error.message.slice(1)}`;
  }
}

/** Shows the login page until somebody has logged in. */
export function ask(problem, done) {
  const [page, form, field, told] = ["login", "login-form", "login-token", "login-problem"].map(byId);
  const tell = (text) => {
    told.hidden = !text;
    told.textContent = text ?? "";
  };
  page.hidden = false;
  byId("app").hidden = true;
  tell(problem);
  field.value = "";
  field.focus();
  form.onsubmit = async (event) => {
    event.preventDefault();
    const wrong = await attempt(tokenIn(field.value));
    tell(wrong);
    if (wrong) {
      field.select();
      return;
    }
    page.hidden = true;
    done();
  };
}
