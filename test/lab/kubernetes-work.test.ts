import { expect, test } from '@jest/globals'
import type { ApiObject, ClusterApi } from '../../lab/kubernetes/api.ts'
import { newestRevision } from '../../lab/kubernetes/work.ts'

const revision = (number: number) => ({ annotations: { 'deployment.kubernetes.io/revision': String(number) } })
const owned = { ownerReferences: [{ uid: 'd' }] }

/** A server that has these sets of a deployment, which says that it is at this revision. */
function serving(said: number, sets: number[]): ClusterApi {
  const list = async (path: string): Promise<ApiObject[]> =>
    path.includes('/replicasets')
      ? sets.map((each) => ({ metadata: { uid: `s${each}`, name: `ledger-${each}`, ...owned, ...revision(each) } }))
      : []
  return { list, find: async () => ({ metadata: { uid: 'd', ...revision(said) } }) } as unknown as ClusterApi
}

test.each([
  ['its deployment says so', 2, [1, 2], 'ledger-2'],
  ['its deployment still says the one before', 1, [1, 2], null],
  ['nothing was rolled out', 1, [1], null],
])('a rollout is seen once %s', async (_, said, sets, name) => {
  expect((await newestRevision(serving(said, sets), 'ledger'))?.set.metadata.name ?? null).toBe(name)
})
