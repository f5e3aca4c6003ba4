import { expect, test } from '@jest/globals'
import { doneWrite } from '../support/done-write.ts'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()

test('the terminal names each VM that an undo would move, with its source and target hosts', async () => {
  const moves = [{ vm: 'vm-1', from: 'host-osl-2', to: 'host-osl-1' }]
  const { key } = await doneWrite(api.db, {
    tool: 'execute_migration',
    arguments: { proposal_id: 'prp_1', reason: 'it looked ill' },
    targets: [{ kind: 'vm', id: 'vm-1' }],
    risk: 'high',
    outcome: 'done',
    said: 'vm-1 was moved',
    undo: {
      tool: 'execute_migration',
      arguments: { moves },
      left: { 'vm-1': 'running', 'host of vm-1': 'host-osl-2' },
    },
  })
  const { stdout } = await runCli(['undo', key, '--dry-run'], api.as('approver'))
  expect(stdout).toContain('would be undone by execute_migration: moves vm-1 from host-osl-2 to host-osl-1\n')
})
