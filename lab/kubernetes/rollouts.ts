import type { ApiObject, ClusterApi } from './api.ts'
import type { WorkloadName } from './shop.ts'
import {
  type ClusterFacts,
  type ClusterFaultWork,
  conditionOf,
  eventsOf,
  logOf,
  newestRevision,
  type Revision,
  revisionFacts,
  rollOut,
  rollOutSettings,
  sinceOf,
} from './work.ts'

/**
 * Builds a fault with a rollout whose pods never become ready. The older revision continues beside
 * these pods.
 */
function wrongRollout(
  name: WorkloadName,
  breakIn: ClusterFaultWork['breakIn'],
  describe: (pod: ApiObject, revision: Revision, api: ClusterApi) => Promise<ClusterFacts | null>,
): ClusterFaultWork {
  return {
    hits: [name],
    breakIn,
    async see(api) {
      const revision = await newestRevision(api, name)
      const pod = revision?.pods[0]
      if (!revision || !pod || conditionOf(pod, 'Ready')?.status !== 'False') return null
      const own = await describe(pod, revision, api)
      if (!own) return null
      const facts = { ...revisionFacts(name, revision), pod: pod.metadata.name, since: sinceOf(pod, 'Ready') }
      return { ...facts, ...own }
    },
  }
}

const containerOf = (pod: ApiObject): ApiObject => pod.status.containerStatuses?.[0] ?? {}
/**
 * Returns how the container last ended, both while it waits for its next start and while it runs
 * again.
 */
const endOf = (pod: ApiObject): ApiObject | undefined =>
  containerOf(pod).state?.terminated ?? containerOf(pod).lastState?.terminated

export const crashLoop: ClusterFaultWork = wrongRollout(
  'cart',
  (_, { api }) => rollOutSettings(api, 'cart', 'port=8080\ncache_sise=64'),
  async (pod, _, api) => {
    const why = `unknown setting 'cache_sise'`
    if (containerOf(pod).state?.waiting?.reason !== 'CrashLoopBackOff') return null
    if (!(await logOf(api, pod, true)).includes(why)) return null
    return { why, exit: String(endOf(pod)?.exitCode), change: 'cart-settings-2', before: 'cart-settings-1' }
  },
)

export const imagePull: ClusterFaultWork = wrongRollout(
  'catalog',
  (_, { api }) =>
    rollOut(api, 'catalog', (_pod, container) => {
      container.image = 'lab.local/shop:3'
    }),
  async (pod, _, api) =>
    (await eventsOf(api, pod)).includes('ImagePullBackOff')
      ? { why: 'ImagePullBackOff', change: 'lab.local/shop:3', before: 'lab.local/shop:1' }
      : null,
)

export const outOfMemory: ClusterFaultWork = wrongRollout(
  'search',
  (_, { api }) =>
    rollOut(api, 'search', (_pod, container) => {
      container.resources.limits.memory = '24Mi'
    }),
  async (pod) =>
    endOf(pod)?.reason === 'OOMKilled' && containerOf(pod).restartCount > 0
      ? { why: 'OOMKilled', exit: String(endOf(pod)?.exitCode), change: '24Mi', before: '160Mi' }
      : null,
)

export const probeFails: ClusterFaultWork = wrongRollout(
  'checkout',
  (_, { api }) =>
    rollOut(api, 'checkout', (_pod, container) => {
      container.readinessProbe.httpGet.path = '/health'
    }),
  async (pod, { deployment }, api) => {
    const why = 'HTTP probe failed with statuscode: 404'
    if (!isStuck(deployment) || !(await eventsOf(api, pod)).includes(why)) return null
    return { why, change: '/health', before: '/healthz' }
  },
)

const isStuck = (deployment: ApiObject): boolean =>
  conditionOf(deployment, 'Progressing')?.reason === 'ProgressDeadlineExceeded'

const pricing = wrongRollout(
  'pricing',
  (_, { api }) => rollOutSettings(api, 'pricing', 'rates=/etc/shop/rates-2026.csv'),
  async (pod, { deployment }, api) => {
    const why = 'cannot read exchange rates from /etc/shop/rates-2026.csv'
    if (!isStuck(deployment) || !(await logOf(api, pod)).includes(why)) return null
    return { why, change: 'pricing-settings-2', before: 'pricing-settings-1' }
  },
)

/**
 * A fault with a distraction, the workload log-shipper. The distraction comes first and is more
 * visible, because its container keeps restarting until somebody stops it.
 */
export const redHerring: ClusterFaultWork = {
  hits: ['pricing', 'log-shipper'],
  async breakIn(lab, cluster) {
    await rollOutSettings(cluster.api, 'log-shipper', 'target=logs.shop:9429')
    await pricing.breakIn(lab, cluster)
  },
  async see(api) {
    const [facts, noise] = [await pricing.see(api), await newestRevision(api, 'log-shipper')]
    const pod = noise?.pods[0]
    return facts && pod && containerOf(pod).restartCount > 0 ? { ...facts, noise: 'log-shipper' } : null
  },
}
