import type { Inventory } from '../../domain/platform.ts'

/** Host c is dead. Its big VM fits on a alone, once two small ones have left it for b; its small one fits on b at once. */
export function twoWaves(): Inventory {
  const host = (id: string, ramMib: number, state: 'live' | 'dead' = 'live') => ({
    ...{ id, region: 'osl', rack: `rack-${id}`, state, ramMib, cpuMc: 64_000 },
  })
  const vm = (id: string, on: string, ramMib: number, running = true) => ({
    ...{ id, host: on, running, ramMib, cpuMc: 500, haGroup: null, tenant: null },
    ...{ priority: 0, pinnedTo: [], forbiddenHosts: [], affinityGroup: null },
  })
  return {
    ...{ regions: [{ id: 'osl' }], shards: [], nodes: [], tenants: [], links: [] },
    hosts: [host('a', 8_000), host('b', 7_000), host('c', 9_000, 'dead'), host('d', 1_000)],
    vms: [
      vm('small-1', 'a', 3_000),
      vm('small-2', 'a', 2_000),
      vm('big', 'c', 8_000, false),
      vm('lone', 'c', 900, false),
    ],
  }
}
