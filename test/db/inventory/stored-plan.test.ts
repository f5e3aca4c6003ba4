import { expect, test } from '@jest/globals'
import { proposalById, storeProposal } from '../../../db/inventory/proposals.ts'
import type { Triage } from '../../../domain/placement.ts'
import { dead, down, host, problem, vm } from '../../placement/problems.ts'
import { useDatabase } from '../../support/database.ts'

const database = useDatabase()
const asked = problem([host('a', 4), host('x', 8, dead)], [vm('v', 3, 'x', down), vm('w', 3, 'x', down)])
const level = {
  priority: 0,
  down: 1,
  scale: 1,
  ramUnit: 1,
  cpuUnit: 1,
  weights: {},
  price: { '3072/3000 priority 0': 1 },
}

test.each<[string, Triage | undefined]>([
  ['a certificate', { proof: 'certificate', levels: [level] }],
  ["a solver's claim", { proof: 'engine' }],
  ['nothing', undefined],
])('a stored plan keeps what shows which VM has to stay down: %s', async (_, triage) => {
  const start = { step: 1, action: 'start' as const, vm: 'v', from: 'x', to: 'a', needs: [], wave: 1 }
  const stored = await storeProposal(
    database.db,
    {
      ...{ incidentId: null, intent: 'recover', hostIds: ['x'], planDigest: 'd', stateFingerprint: 'f' },
      ...{ fromInventory: false, state: 'partial', steps: [start], migrations: 0, lowerBound: 0 },
      ...{ proof: { kind: 'trivial' }, unplaced: [{ vm: 'w', reason: 'no room' }], obstacle: null, standing: null },
      ...{ reason: null, ...(triage && { triage }) },
    },
    asked,
  )
  expect(stored.triage).toEqual(triage)
  const read = await proposalById(database.db, stored.id)
  expect(read?.proposal.triage).toEqual(triage)
})
