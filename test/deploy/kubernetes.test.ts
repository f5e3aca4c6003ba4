import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig, secrets, settingNames } from '../../config/settings.ts'
import { version } from '../../domain/version.ts'
import { faultsOfRestricted, type PodSpec } from './restricted.ts'

const folder = 'deploy/kubernetes'
const read = (name: string) => readFileSync(join(folder, name), 'utf8')
// biome-ignore lint/suspicious/noExplicitAny: each object has the shape of its kind
type Manifest = any

const kustomization = parse(read('kustomization.yaml'))
const resources: Manifest[] = kustomization.resources.flatMap((name: string) =>
  parseAllDocuments(read(name)).map((each) => each.toJS()),
)
const ofKind = (kind: string) => resources.filter((each) => each.kind === kind)
const named = (kind: string, name: string) => ofKind(kind).find(({ metadata }) => metadata.name === name)
const workloads = resources.filter(({ kind }) => ['Deployment', 'Job'].includes(kind))
const podOf = (workload: Manifest): PodSpec => workload.spec.template.spec
const containerOf = (workload: Manifest) => podOf(workload).containers[0] as Manifest
const labelsOf = (workload: Manifest) => workload.spec.template.metadata.labels

test('the kustomization includes every file of the folder, and each object is in the namespace that enforces the profile restricted', () => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
  expect(kustomization.resources.toSorted()).toEqual(files.toSorted())
  const namespace = named('Namespace', kustomization.namespace)
  for (const mode of ['enforce', 'warn', 'audit'])
    expect(namespace.metadata.labels[`pod-security.kubernetes.io/${mode}`]).toBe('restricted')
  const elsewhere = resources.filter(
    ({ kind, metadata }) =>
      !['Namespace', 'ConfigMap'].includes(kind) && metadata.namespace !== namespace.metadata.name,
  )
  expect(elsewhere).toEqual([])
})

describe.each(workloads.map((each) => [each.metadata.name, each] as const))('%s', (name, workload) => {
  const pod = podOf(workload)
  const container = containerOf(workload)

  test('breaks no control of the profile restricted, as user 1000 of the image', () => {
    expect(faultsOfRestricted(pod)).toEqual([])
    const [, user] =
      /^USER (\d+):\d+$/m.exec(
        readFileSync('Dockerfile', 'utf8')
          .split(/^FROM /m)
          .at(-1)!,
      ) ?? []
    expect(pod.securityContext).toMatchObject({ runAsUser: Number(user), runAsGroup: 1000, fsGroup: 1000 })
  })

  test('writes only into named, bounded volumes, and has no token of the cluster and no variable of a Service', () => {
    expect(container.securityContext.readOnlyRootFilesystem).toBe(true)
    const { volumes = [], ...rest } = pod as Manifest
    for (const { name: mount, readOnly } of container.volumeMounts) {
      const volume = volumes.find((each: Manifest) => each.name === mount)
      if (volume.secret) expect([volume.secret.defaultMode.toString(8), readOnly]).toEqual(['440', true])
      else expect(volume.emptyDir.sizeLimit).toMatch(/^\d+Mi$/)
    }
    expect(volumes).toHaveLength(container.volumeMounts.length)
    expect(rest).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false })
    expect(named('ServiceAccount', rest.serviceAccountName).automountServiceAccountToken).toBe(false)
  })

  test('sets settings that exist, with secrets in mounted files, and the process accepts them', () => {
    const known = [...settingNames, ...secrets.map((each) => `${each}_FILE`), 'NIGHTSHIFT_COMMAND']
    const env: { name: string; value: string }[] = container.env
    expect(env.map((each) => each.name).filter((each) => !known.includes(each))).toEqual([])
    const mounts: string[] = container.volumeMounts.map(({ mountPath }: Manifest) => mountPath)
    const files = env.filter((each) => each.name.endsWith('_FILE'))
    for (const { name: setting, value } of files)
      expect([setting, mounts.some((mount) => value.startsWith(`${mount}/`))]).toEqual([setting, true])
    const rest = env.filter((each) => !files.includes(each)).map((each) => [each.name, each.value])
    expect(() => readConfig(Object.fromEntries(rest))).not.toThrow()
  })

  test('runs the image of this version with a command of the image, and requests its resources', () => {
    expect(container.image).toBe(`nightshift:${version}`)
    const [program, file] = container.command
    expect([program, readFileSync(file.replace(/\.js$/, '.ts'), 'utf8').length > 0]).toEqual(['node', true])
    const { requests, limits } = container.resources
    for (const part of ['cpu', 'memory', 'ephemeral-storage']) expect(requests[part]).toBeDefined()
    for (const part of ['memory', 'ephemeral-storage']) expect(limits[part]).toBeDefined()
    // A limit of CPU slows what is due, and protects nobody.
    expect(limits.cpu).toBeUndefined()
    if (workload.kind === 'Job') expect(name).toBe(`nightshift-migrate-${version.replaceAll('.', '-')}`)
  })
})

/** The names that the file sets, or shows behind a `#`. */
const settingsShown = [...read('settings.env').matchAll(/^(?:# )?([A-Z][A-Z_]+)=/gm)].map(([, name = '']) => name)

test('settings.env has settings that exist, and secrets only as files', () => {
  const known: string[] = [...settingNames, ...secrets.map((each) => `${each}_FILE`)]
  expect(settingsShown.length).toBeGreaterThan(4)
  expect(settingsShown.filter((each) => !known.includes(each))).toEqual([])
  expect(settingsShown.filter((each) => (secrets as readonly string[]).includes(each))).toEqual([])
})

test('only the migrations get the login that owns the tables, and only the API gets the keys of the mesh', () => {
  const readers = (secret: string) =>
    workloads
      .filter((each) => (podOf(each).volumes as Manifest[]).some((volume) => volume.secret?.secretName === secret))
      .map(({ metadata }) => metadata.name)
  expect(readers('nightshift-migrate')).toEqual([expect.stringMatching(/^nightshift-migrate-/)])
  expect(readers('nightshift-api')).toEqual(['nightshift-api'])
  expect(readers('nightshift')).toEqual(['nightshift-api', 'nightshift-worker'])
})

describe.each(['api', 'worker'])('the %s', (part) => {
  const workload = named('Deployment', `nightshift-${part}`)
  const container = containerOf(workload)
  const [{ name: portName, containerPort }] = container.ports

  test('listens on the port of its probes, its Service and its policy', () => {
    const set = Object.fromEntries(container.env.map((each: Manifest) => [each.name, each.value]))
    const config = readConfig({ PORT: set.PORT, WORKER_PORT: set.WORKER_PORT })
    expect(containerPort).toBe(part === 'api' ? config.PORT : config.WORKER_PORT)
    const dockerfile = readFileSync('Dockerfile', 'utf8')
    expect(/^EXPOSE (.*)$/m.exec(dockerfile)?.[1]?.split(' ')).toContain(String(containerPort))
    const served = { api: 'api/routes/health.ts', worker: 'worker/health.ts' }[part]!
    for (const [probe, path] of [
      ['startupProbe', '/livez'],
      ['livenessProbe', '/livez'],
      ['readinessProbe', '/readyz'],
    ] as const) {
      expect(container[probe].httpGet).toEqual({ path, port: portName })
      expect(readFileSync(served, 'utf8')).toContain(`app.get('${path}'`)
    }
    const service = ofKind('Service').find(({ spec }) => Object.entries(spec.selector).every(isIn(labelsOf(workload))))
    expect(service === undefined).toBe(part === 'worker')
    for (const { targetPort, port } of service?.spec.ports ?? [])
      expect([targetPort, `http://${service.metadata.name}:${port}`]).toEqual([portName, set.CORE_API_URL])
  })

  test('is replaced one pod at a time, never below one, and has enough time to stop', () => {
    const { strategy, replicas, selector } = workload.spec
    expect([strategy.rollingUpdate, replicas]).toEqual([{ maxUnavailable: 0, maxSurge: 1 }, 2])
    const budget = named('PodDisruptionBudget', `nightshift-${part}`)
    expect(budget.spec).toEqual({ minAvailable: 1, selector })
    expect(Object.entries(selector.matchLabels).every(isIn(labelsOf(workload)))).toBe(true)
    const grace = parse(readFileSync('docker-compose.yml', 'utf8'), { merge: true }).services[part].stop_grace_period
    const sleeps = container.lifecycle?.preStop.sleep.seconds ?? 0
    expect((podOf(workload) as Manifest).terminationGracePeriodSeconds - sleeps).toBeGreaterThanOrEqual(
      Number.parseInt(grace, 10),
    )
  })
})

const isIn =
  (labels: Record<string, string>) =>
  ([key, value]: [string, unknown]) =>
    labels[key] === value

/** Folders and those they reach, as one line for each opening. */
function openings(): string[] {
  return ofKind('NetworkPolicy').flatMap(({ spec }) => {
    const ports = (rule: Manifest) => rule.ports.map((each: Manifest) => `${each.port}/${each.protocol}`).join(' ')
    const subject = workloads
      .filter((each) => selects(spec.podSelector, labelsOf(each)))
      .map((each) => each.metadata.labels['app.kubernetes.io/name'].replace('nightshift-', ''))
      .join('+')
    return [
      ...(spec.ingress ?? []).map((rule: Manifest) => `${rule.from.map(peer).join(', ')} → ${subject} ${ports(rule)}`),
      ...(spec.egress ?? []).map((rule: Manifest) => `${subject} → ${rule.to.map(peer).join(', ')} ${ports(rule)}`),
    ]
  })
}

function selects(selector: Manifest, labels: Record<string, string>): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector
  return (
    Object.entries(matchLabels).every(isIn(labels)) &&
    matchExpressions.every(({ key, operator, values }: Manifest) => operator === 'In' && values.includes(labels[key]))
  )
}

function peer({ ipBlock, namespaceSelector, podSelector }: Manifest): string {
  const words = (selector: Manifest) => Object.values(selector.matchLabels)
  return [
    ...(ipBlock ? [ipBlock.cidr] : []),
    ...(namespaceSelector ? words(namespaceSelector) : []),
    ...(podSelector ? words(podSelector) : []),
  ].join('/')
}

test('only named traffic enters and leaves', () => {
  expect(named('NetworkPolicy', 'default-deny').spec).toEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] })
  expect(openings()).toEqual([
    'ingress-nginx, nightshift-worker → api 8080/TCP',
    'worker → nightshift-api 8080/TCP',
    'migrate+api+worker → kube-system/kube-dns 53/UDP 53/TCP',
    'migrate+api+worker → 192.0.2.1/32 5432/TCP',
    'api+worker → 192.0.2.2/32 7233/TCP',
    'worker → 192.0.2.3/32 8000/TCP',
  ])
  for (const { spec } of ofKind('NetworkPolicy')) {
    expect(spec.policyTypes.includes('Ingress')).toBe(spec.ingress !== undefined || spec.egress === undefined)
    expect(spec.policyTypes.includes('Egress')).toBe(spec.egress !== undefined || spec.ingress === undefined)
  }
})

test('the files that site.yaml names are where the kustomization puts them, and are never sent to the cluster', () => {
  const site = named('ConfigMap', 'nightshift-site')
  expect(site.metadata.annotations['config.kubernetes.io/local-config']).toBe('true')
  const replaced = kustomization.replacements as { source: Manifest; targets: Manifest[] }[]
  expect(replaced.map(({ source }) => source.fieldPath).toSorted()).toEqual(
    Object.keys(site.data)
      .map((key) => `data.${key}`)
      .toSorted(),
  )
  for (const { source, targets } of replaced) {
    const value = site.data[source.fieldPath.replace('data.', '')]
    for (const { select, fieldPaths, options } of targets) {
      const found = resources.filter(
        ({ kind, metadata }) => kind === select.kind && (select.name ?? metadata.name) === metadata.name,
      )
      expect(found.length).toBeGreaterThan(0)
      for (const each of found)
        for (const path of fieldPaths) {
          const text = String(fieldOf(each, path))
          expect([path, options ? text.split(options.delimiter)[options.index] : text]).toEqual([path, value])
        }
    }
  }
})

function fieldOf(object: Manifest, path: string): unknown {
  const steps = path.match(/\[[^\]]+\]|[^.[\]]+/g) ?? []
  return steps.reduce((value: Manifest, step) => value?.[step.replace(/^\[|\]$/g, '')], object)
}

test.each([
  ['root', { securityContext: { runAsUser: 0 } }, 'pod runs as user 0'],
  ['a network of the host', { hostNetwork: true }, 'hostNetwork'],
  ['a folder of the host', { volumes: [{ name: 'v', hostPath: { path: '/' } }] }, 'volume v is a hostPath'],
  ['no seccomp', { containers: [{ name: 'c' }] }, 'c has no seccomp profile'],
  ['seccomp off', { securityContext: { seccompProfile: { type: 'Unconfined' } } }, 'pod has seccomp Unconfined'],
  ['capabilities', { containers: [{ name: 'c' }] }, 'c keeps capabilities'],
  ['a port of the host', { containers: [{ name: 'c', ports: [{ hostPort: 80 }] }] }, 'c takes a port of the host'],
  ['a first container', { initContainers: [{ name: 'i' }] }, 'i may gain rights'],
])('a pod with %s is found', (_what, part, fault) => {
  expect(faultsOfRestricted({ containers: [], ...part } as PodSpec)).toContain(fault)
})
