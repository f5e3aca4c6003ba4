import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { readSpecAndSettle } from './program.ts'

/**
 * Runs programs of the shop with sessions on PostgreSQL. A file lists the sessions and contains the
 * password. A session that somebody ended stays ended, unless `isLasting`.
 */
const { file } = readSpecAndSettle<{ file: string }>()

type SessionPlan = {
  url: string
  application: string
  /** Statements to run in this order. The last statement may wait for a lock, or never end. */
  steps: string[]
  /** Statements to run after the last step has ended. */
  after?: string[]
  /** Milliseconds after which the statements are repeated. An error rolls a round back. */
  everyMs?: number
  /** Milliseconds between two steps of a round. */
  pauseMs?: number
  isLasting?: boolean
}

const plans = JSON.parse(readFileSync(file, 'utf8')) as SessionPlan[]
for (const plan of plans) await open(plan)
process.stdout.write(`${JSON.stringify({ listening: 0 })}\n`)

/** Resolves when the session's last step was sent and had a moment to reach its lock. */
async function open(plan: SessionPlan): Promise<void> {
  const client = new pg.Client({ connectionString: plan.url, application_name: plan.application })
  let isOpen = true
  client.on('error', () => {
    isOpen = false
  })
  client.on('end', () => {
    isOpen = false
    if (plan.isLasting) setTimeout(() => void reopen(plan), 1_000)
  })
  await client.connect()
  if (plan.everyMs) return void repeat(client, plan, () => isOpen)
  const last = plan.steps.length - 1
  for (const step of plan.steps.slice(0, last)) await client.query(step)
  const lastStep = plan.steps[last]
  if (lastStep === undefined) return
  const ended = client
    .query(lastStep)
    .then(async () => {
      for (const step of plan.after ?? []) await client.query(step)
    })
    .catch(() => undefined)
  await Promise.race([ended, sleep(150)])
}

async function reopen(plan: SessionPlan): Promise<void> {
  await open(plan).catch(() => setTimeout(() => void reopen(plan), 1_000))
}

async function repeat(client: pg.Client, plan: SessionPlan, isOpen: () => boolean): Promise<void> {
  const everyMs = plan.everyMs ?? 1_000
  while (isOpen()) {
    await sleep(everyMs - (Date.now() % everyMs))
    try {
      for (const step of plan.steps) {
        await client.query(step)
        if (plan.pauseMs) await sleep(plan.pauseMs)
      }
    } catch {
      await client.query('rollback').catch(() => undefined)
    }
  }
}
