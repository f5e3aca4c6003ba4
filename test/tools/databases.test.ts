import { expect, test } from '@jest/globals'
import type { ToolContext } from '../../domain/tool.ts'
import { databaseTools } from '../../tools/databases.ts'

const preparation = {
  targets: [{ kind: 'database', id: 'pg-2' }],
  identity: { database: 'pg-2' },
  stateFingerprint: 'f',
  asks: { risk: 'medium', why: 'asked every time' },
  dryRun: { possible: true, summary: 'start', details: {} },
}

test.each([
  ['start_replica', {}, '/api/v1/databases/pg-2/start_replica/preparation'],
  ['drop_replication_slot', { slot: 'old' }, '/api/v1/databases/pg-2/drop_replication_slot/preparation?slot=old'],
])(
  '%s is prepared at an address that the core accepts, also if it is about the server alone',
  async (name, about, path) => {
    const asked: string[] = []
    const core = {
      async get(given: string) {
        asked.push(given)
        return { ok: true, data: preparation }
      },
    }
    const tool = databaseTools.find((each) => each.name === name)
    await tool?.prepare?.({ database: 'pg-2', ...about, reason: 'it stands still' }, { core } as unknown as ToolContext)
    expect(asked).toEqual([path])
  },
)
