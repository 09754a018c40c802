"""Telegram, as the package `telemelya` plays it, for bots that updates are sent to.

The package wants a Redis and an S3 beside it; both are kept in memory here. It also sends updates without the secret
that the bot asked for, which is added.

Settings come as variables: PORT.
"""

import json
import os

import aiohttp
import fakeredis
import uvicorn
from fastapi import Request
from telemelya.server import app as package
from telemelya.server import control_api, media, state

SECRETS = {}
FILES = {}


async def remember():
    state.state_manager._redis = fakeredis.FakeAsyncRedis(decode_responses=True)


async def nothing():
    pass


async def keep(session_id, file_id, filename, data, content_type="application/octet-stream"):
    key = f"{session_id}/{file_id}/{filename}"
    FILES[key] = data
    return key


async def kept(key):
    return FILES.get(key)


async def kept_of(session_id, file_id, filename):
    return FILES.get(f"{session_id}/{file_id}/{filename}")


async def deliver(token, update):
    url = await state.state_manager.get_webhook(token)
    if url is None:
        return {"delivered": False, "error": "there is no webhook"}
    # A picture has a caption and no text; the package sends an empty one.
    message = update.get("message", {})
    if "photo" in message:
        message.pop("text", None)
    headers = {"X-Telegram-Bot-Api-Secret-Token": SECRETS.get(token, "")}
    async with aiohttp.ClientSession() as client, client.post(url, json=update, headers=headers) as answer:
        return {"delivered": True, "status_code": answer.status, "response_body": await answer.text()}


state.state_manager.connect = remember
media.media_manager.connect = nothing
media.media_manager.close = nothing
media.media_manager.upload = keep
media.media_manager.download = kept_of
media.media_manager.download_by_key = kept
control_api.deliver_update = deliver


# Nobody can look at these, but a bot that asks for them is told that they were done.
@package.app.post("/bot{token}/setMyCommands")
@package.app.post("/bot{token}/deleteMyCommands")
@package.app.post("/bot{token}/setMessageReaction")
async def done(token: str):
    return {"ok": True, "result": True}


@package.app.middleware("http")
async def note_the_secret(request: Request, go_on):
    if request.url.path.endswith("/setWebhook"):
        asked = json.loads(await request.body())
        token = request.url.path.split("/")[1].removeprefix("bot")
        SECRETS[token] = asked.get("secret_token", "")
    return await go_on(request)


uvicorn.run(package.app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
