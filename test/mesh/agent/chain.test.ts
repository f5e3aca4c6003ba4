import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { auditJournal } from '../../support/audit-journal.ts'
import { keys, type Running, startAgent } from '../../support/running-agent.ts'

const own = keys()
let agent: Running
beforeAll(async () => {
  agent = await startAgent(own)
})
afterAll(() => agent.stop())

test('each answer names its entry of the journal, also refusals', async () => {
  const answers = [
    await agent.call('shell.exec', { argv: ['uptime'] }),
    await agent.call('shell.exec', { argv: ['touch', '/tmp/x'] }),
    await agent.granted('shell.exec', { argv: ['true'] }),
  ].map(({ answer }) => answer)
  const audited = auditJournal(agent.state)
  expect(audited.ok).toBe(true)
  if (!audited.ok) return
  expect(answers.map(({ audit_hash }) => audited.byHash.get(audit_hash ?? ''))).toMatchObject([
    { kind: 'done', requestId: answers[0]?.request_id },
    { kind: 'refused', requestId: answers[1]?.request_id },
    { kind: 'done', requestId: answers[2]?.request_id },
  ])
  expect(audited.head).toBe((await agent.health()).journal?.head)
})

test('a changed journal does not verify', async () => {
  await agent.granted('shell.exec', { argv: ['true', 'before'] })
  const segment = join(agent.state, 'journal', readdirSync(join(agent.state, 'journal')).sort()[0] as string)
  writeFileSync(segment, readFileSync(segment, 'utf8').replace('true before', 'true after!'))
  expect(auditJournal(agent.state)).toMatchObject({ ok: false, reason: expect.stringContaining('entry') })
})
