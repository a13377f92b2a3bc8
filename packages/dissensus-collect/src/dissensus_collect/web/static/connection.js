// Posting to the server, with the token that every post needs.

const token = document.querySelector("meta[name=csrf]");

/** 128 random bits as text. Not randomUUID: browsers do not offer it to pages on plain HTTP, as in a laboratory. */
export const newName = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Post JSON. Resolves to {status, data}; rejects only if the network fails. */
export async function post(path, body) {
  const answer = await send(path, body);
  if (answer.status !== 403) return answer;
  // The token may have changed since this page was loaded: ask for it once, then post again.
  const session = await fetch("/api/session", { credentials: "same-origin", cache: "no-store" });
  if (!session.ok) return answer;
  token.content = (await session.json()).csrf;
  return send(path, body);
}

async function send(path, body) {
  const response = await fetch(path, {
    method: "POST",
    credentials: "same-origin",
    cache: "no-store",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": token.content },
    body: JSON.stringify(body),
  });
  const data = await response.json().catch(() => ({}));
  return { status: response.status, data };
}
