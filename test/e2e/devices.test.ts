import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { enrolLab } from '../../start/enrol-lab.ts'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'

const keys = temporaryDirectory()
let spine: Spine

beforeAll(async () => {
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    environment: { ...ensureMeshKeys(keys.path) },
  })
  await enrolLab(spine.url, spine.tokens.admin, spine.lab)
}, 300_000)
afterAll(async () => {
  await spine?.stop()
  keys.remove()
})

test('a runaway process is found on its node, ended after a person said yes, and gone', async () => {
  await spine.lab.break('runaway_process', 'web-osl-1')
  const asked = await spine.pendingApproval()
  expect(asked).toMatchObject({ tool: 'proc_kill', risk: 'high', dryRun: { possible: expect.any(Boolean) } })
  const as = { token: spine.tokens.approver }
  const { body } = await spine.post(`/approvals/${asked.id}/token`, {}, as)
  await spine.post(`/approvals/${asked.id}/decision`, { decision: 'approve', token: body.token }, as)
  const incident = await spine.incident('runaway_process', 'resolved|escalated', 240_000)
  expect(incident).toMatchObject({ status: 'resolved' })
  expect(await spine.lab.oracle('runaway_process', 'web-osl-1')).toMatchObject({ healthy: true })

  // What the device journalled and what the incident tells agree.
  const node = incident.resource?.id as string
  const audit = await spine.get<{ problems: string[]; calls: unknown[] }>(`/devices/${node}/audit`)
  expect(audit.problems).toEqual([])
  expect(audit.calls.length).toBeGreaterThan(1)
}, 400_000)
