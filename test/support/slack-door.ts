import { afterAll, beforeAll, beforeEach, expect } from '@jest/globals'
import pino from 'pino'
import { useSlackChannel } from '../../db/outbox/slack-channel.ts'
import { inCheckout } from '../../domain/own-command.ts'
import { createSlackClient } from '../../notify/slack/client.ts'
import { startSlack } from '../../notify/slack/send.ts'
import { type TestApi, useApi } from './api.ts'
import { type ScriptedSlack, startScriptedSlack } from './scripted-slack.ts'

/** An API whose Slack is scripted, with the loop that posts to it. */
export type SlackDoor = { api: TestApi; slack: ScriptedSlack }

export const publicUrl = 'https://nightshift.example'

export function useSlackDoor(): SlackDoor {
  let worker: { stop(): Promise<void> } | undefined
  const door = {} as SlackDoor
  door.api = useApi(async () => {
    door.slack = await startScriptedSlack()
    return { slack: createSlackClient(door.slack.settings), publicUrl, commandPrefix: inCheckout }
  })
  beforeAll(async () => {
    const { slack } = door
    await useSlackChannel(door.api.db, slack.settings.channel)
    const [log, client] = [pino({ level: 'silent' }), createSlackClient(slack.settings)]
    worker = startSlack(
      door.api.db,
      log,
      client,
      { publicUrl, commandPrefix: inCheckout },
      { paceSeconds: 0, pollEveryMs: 50 },
    )
  })
  beforeEach(() => {
    door.slack.calls.length = 0
  })
  afterAll(async () => {
    await worker?.stop()
    await door.slack?.stop()
  })
  return door
}

/** People with a member ID of Slack: `anna` is `U0ANNA`. */
export async function putMembers(api: TestApi, people: Record<string, object>, all: object): Promise<void> {
  for (const [name, own] of Object.entries(people)) {
    const slackUserId = `U0${name.toUpperCase()}`
    const body = { incidentTypes: null, disabled: false, slackUserId, ...all, ...own }
    expect((await api.put(`/operators/${name}`, { body })).status).toBe(200)
  }
}
