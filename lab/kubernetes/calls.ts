import { orderCluster } from './drawer.ts'
import { controlAddress } from './layout.ts'
import { deploymentPath } from './shop.ts'
import {
  type ClusterFaultWork,
  changedBy,
  conditionOf,
  logOf,
  newestRevision,
  revisionFacts,
  sinceOf,
  until,
} from './work.ts'

const servicePath = '/api/v1/namespaces/shop/services/storefront'
const slicesOf = (namespace: string, service: string): string =>
  `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=kubernetes.io/service-name%3D${service}`

export const wrongSelector: ClusterFaultWork = {
  hits: [],
  async breakIn(_, { api }) {
    await api.patch(servicePath, { spec: { selector: { app: 'store-front' } } }, 'release-pipeline')
  },
  async see(api) {
    const [service, slices] = [await api.get(servicePath), await api.list(slicesOf('shop', 'storefront'))]
    const addresses = slices.flatMap(({ endpoints }) => endpoints ?? [])
    if (service.spec.selector.app === 'storefront' || addresses.length > 0) return null
    const changedAt = changedBy(service, 'release-pipeline')
    return {
      object: 'storefront',
      why: 'app=store-front',
      wanted: 'app=storefront',
      since: changedAt,
      changedAt,
      manager: 'release-pipeline',
      change: 'store-front',
    }
  },
  async heal(_, { api }) {
    await api.patch(servicePath, { spec: { selector: { app: 'storefront' } } })
  },
}

const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
const webhookName = 'pods.policy.example'
const serverName = 'pod-policy.payments.svc'
const webhookPort = 9443

/**
 * A service without a selector that points to the lab's address, because the webhook runs beside
 * the API server.
 */
const webhookObjects: [string, object][] = [
  [
    '/api/v1/namespaces/payments/services',
    { metadata: { name: 'pod-policy' }, spec: { ports: [{ name: 'https', port: 443, targetPort: webhookPort }] } },
  ],
  [
    '/api/v1/namespaces/payments/endpoints',
    {
      metadata: { name: 'pod-policy' },
      subsets: [
        { addresses: [{ ip: controlAddress }], ports: [{ name: 'https', port: webhookPort, protocol: 'TCP' }] },
      ],
    },
  ],
]

export const webhookExpired: ClusterFaultWork = {
  hits: ['billing'],
  async breakIn(lab, { api, authority }) {
    const endsAt = new Date(Date.now() - 3 * 3_600_000)
    const issued = await authority.issue(`CN=${serverName}`, { names: [serverName], endsAt })
    orderCluster(lab, { kind: 'webhook', ...issued, host: controlAddress, port: webhookPort })
    for (const [path, object] of webhookObjects) await api.create(path, object)
    const slices = slicesOf('payments', 'pod-policy')
    await until(async () => (await api.list(slices)).length > 0, 'the webhook to have its address')
    await api.create(configurations, {
      metadata: { name: 'pod-policy' },
      webhooks: [
        {
          name: webhookName,
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          timeoutSeconds: 5,
          failurePolicy: 'Fail',
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'payments' } },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
          clientConfig: {
            service: { namespace: 'payments', name: 'pod-policy', path: '/validate' },
            caBundle: Buffer.from(authority.certificate).toString('base64'),
          },
        },
      ],
    })
    // Restarts the deployment as "kubectl rollout restart" does, although the deployment has no
    // fault.
    await api.change(
      deploymentPath('billing'),
      ({ spec }) => {
        spec.template.metadata.annotations = { 'kubectl.kubernetes.io/restartedAt': new Date().toISOString() }
      },
      'kubectl-rollout',
    )
  },
  async see(api) {
    const revision = await newestRevision(api, 'billing')
    const failure = revision && conditionOf(revision.set, 'ReplicaFailure')
    if (!revision || failure?.status !== 'True') return null
    const ended = /certificate has expired.* is after (\S+Z)/.exec(failure.message)
    if (!ended?.[1]) return null
    return {
      ...revisionFacts('billing', revision),
      since: sinceOf(revision.set, 'ReplicaFailure'),
      why: 'certificate has expired',
      webhook: webhookName,
      certificateEnd: ended[1],
    }
  },
  async heal(lab, { api }) {
    await api.remove(`${configurations}/pod-policy`)
    for (const [path, { metadata }] of webhookObjects as [string, { metadata: { name: string } }][])
      await api.remove(`${path}/${metadata.name}`)
    orderCluster(lab, { kind: 'webhook_end' })
  },
}

const jobsPath = '/apis/batch/v1/namespaces/shop/jobs'
const jobName = 'reindex-catalog'

export const jobEndless: ClusterFaultWork = {
  hits: [],
  async breakIn(_, { api }) {
    const container = {
      name: 'reindex',
      image: 'lab.local/shop:1',
      args: ['reindex'],
      env: [{ name: 'APP', value: jobName }],
      resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '64Mi' } },
      volumeMounts: [{ name: 'settings', mountPath: '/etc/shop' }],
    }
    await api.create(`${jobsPath}?fieldManager=nightly-scheduler`, {
      metadata: { name: jobName, labels: { app: jobName } },
      spec: {
        template: {
          metadata: { labels: { app: jobName } },
          spec: {
            restartPolicy: 'Never',
            terminationGracePeriodSeconds: 1,
            automountServiceAccountToken: false,
            containers: [container],
            volumes: [{ name: 'settings', configMap: { name: 'catalog-settings-1' } }],
          },
        },
      },
    })
  },
  async see(api) {
    const job = await api.find(`${jobsPath}/${jobName}`)
    const [pod] = await api.list(`/api/v1/namespaces/shop/pods?labelSelector=app%3D${jobName}`)
    const why = 'waits for the lock of the catalog'
    if (!job?.status?.active || !pod || !(await logOf(api, pod)).includes(why)) return null
    return {
      object: jobName,
      pod: pod.metadata.name,
      since: job.status.startTime,
      changedAt: job.metadata.creationTimestamp,
      why,
      missing: 'activeDeadlineSeconds',
      manager: 'nightly-scheduler',
    }
  },
  heal: (_, { api }) => api.remove(`${jobsPath}/${jobName}`),
}
