import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/**
 * Reads cases of Cloud-OpsBench from their files: the readings that lead to a diagnosis, the
 * diagnosis, and the words that prove a fault.
 */

/**
 * A claim about a fault, and patterns of the words that prove the claim in readings of Kubernetes,
 * nodes and logs. The words come from Kubernetes, systemd and MySQL. `{o}` is the faulty object.
 * The group `q` contains the deciding words, which the claim quotes. The first pattern that is in a
 * reading counts.
 */
type FaultClaim = {
  /** The text of the claim, with the object, the fault, and the deciding words. */
  says: string
  shows: readonly string[]
}

const pods = (says: string, ...shows: string[]): FaultClaim => ({ says: `Service {o}: ${says} ("{q}").`, shows })
const unscheduled = (...shows: string[]): FaultClaim => pods('its pod is not scheduled', ...shows)
const unit = (name: string): FaultClaim => ({
  says: `On node {o} the unit ${name} is "{q}".`,
  shows: [`${name}[\\s\\S]{0,400}?Active: (?<q>inactive \\(dead\\)|failed)`],
})
const quota = (name: string, resource: string): FaultClaim => ({
  says: `Namespace {o}: the quota of ${name} is used up ("{q}").`,
  shows: [
    `(?<q>exceeded quota: [\\w-]+, requested: ${resource}=[^\\s,]+)`,
    `(?<q>${resource}: \\d+\\S*/\\d+\\w*)`,
    `(?<q>${resource} +\\d+\\w* +\\d+\\w*)`,
  ],
})
const alert = (says: string, evidence: string): FaultClaim => ({
  says: `${says}: "{q}".`,
  shows: [`"name": "{o}",(?:(?!"name":)[\\s\\S])*?"(?<q>(?:${evidence})[^"]*)"`],
})
const unbound = (...shows: string[]): FaultClaim => ({ says: 'Claims of {o} are not bound: "{q}".', shows })

const faults: Record<string, FaultClaim> = {
  missing_service_account: pods(
    'its pods are forbidden',
    '(?<q>is forbidden: error looking up service account \\S+ serviceaccount "[\\w.-]+" not found)',
  ),
  namespace_cpu_quota_exceeded: quota('CPU', '(?:requests|limits)\\.cpu'),
  namespace_memory_quota_exceeded: quota('memory', '(?:requests|limits)\\.memory'),
  namespace_pod_quota_exceeded: quota('pods', 'pods'),
  namespace_service_quota_exceeded: quota('services', 'services'),
  namespace_storage_quota_exceeded: quota('storage', '(?:requests\\.storage|persistentvolumeclaims)'),
  containerd_unavailable: unit('containerd'),
  kubelet_unavailable: unit('kubelet'),
  kube_proxy_unavailable: unit('kube-proxy'),
  kube_scheduler_unavailable: unit('kube-scheduler'),
  node_network_delay: alert('The network of node {o} is slow', 'NETWORK_QUALITY|LATENCY|TRAFFIC'),
  node_network_packet_loss: alert('The network of node {o} loses packets', 'NETWORK_QUALITY'),
  pod_cpu_overload: alert('Service {o} has too little CPU', 'RESOURCE_SATURATION'),
  pod_network_delay: alert('The network of service {o} is slow', 'LATENCY|TRAFFIC|THROUGHPUT'),
  db_connection_exhaustion: { says: 'The database answers "{q}".', shows: ['(?<q>Too many connections)'] },
  db_read_only: {
    says: 'The database takes no writes: "{q}".',
    shows: ['(?<q>running with the --(?:super-)?read-only option)', '(?<q>SQL Error: 1290, SQLState: HY000)'],
  },
  deployment_zero_replicas: {
    says: 'Deployment {o} has "{q}" replicas.',
    shows: ['(?:^|\\n)(?:deployment\\.apps/)?{o} +(?<q>0/0) +0'],
  },
  liveness_probe_incorrect_protocol: pods(
    'its liveness probe speaks another protocol',
    '(?<q>Liveness probe failed: Get \\S+: net/http: HTTP/1.x transport connection broken)',
    '(?<q>Liveness probe failed: [^\\n]{0,120})',
  ),
  liveness_probe_incorrect_port: pods(
    'its liveness probe asks another port',
    '(?<q>Liveness probe failed: [^\\n]{0,120}?:\\d+[^\\n]{0,60})',
  ),
  liveness_probe_incorrect_timing: pods(
    'its liveness probe begins too early',
    'Liveness: [^\\n]*? (?<q>delay=\\d+s timeout=\\d+s period=1s #success=1 #failure=1)',
    'Liveness: [^\\n]*? (?<q>delay=[01]s timeout=\\d+s [^\\n]*)',
  ),
  readiness_probe_incorrect_protocol: pods(
    'its readiness probe speaks another protocol',
    '(?<q>Readiness probe failed: Get \\S+: net/http: HTTP/1.x transport connection broken)',
    '(?<q>Readiness probe failed: [^\\n]{0,120})',
  ),
  readiness_probe_incorrect_port: pods(
    'its readiness probe asks another port',
    '(?<q>Readiness probe failed: [^\\n]{0,120}?:\\d+[^\\n]{0,60})',
  ),
  mysql_invalid_credentials: {
    says: 'The database lets {o} not in: "{q}".',
    shows: ["(?<q>Access denied for user '\\w+')"],
  },
  mysql_invalid_port: {
    says: 'The configuration of {o} has "{q}".',
    shows: ["(?<q>\\w*MYSQL_PORT: '(?!3306')\\d+')"],
  },
  oom_killed: pods('its container has too little memory', '(?<q>container init was OOM-killed)', '(?<q>OOMKilled)'),
  service_sidecar_port_conflict: pods('its port is taken', '(?<q>Port \\d+ (?:was|is) already in use)'),
  cpu_capacity_mismatch: unscheduled('(?<q>\\d+ Insufficient cpu)'),
  memory_capacity_mismatch: unscheduled('(?<q>\\d+ Insufficient memory)'),
  node_affinity_mismatch: unscheduled("(?<q>\\d+ node\\(s\\) didn't match Pod's node affinity/selector)"),
  node_selector_mismatch: unscheduled(
    'Node-Selectors: +(?<q>\\S+=\\S+)',
    "(?<q>didn't match Pod's node affinity/selector)",
  ),
  node_cordon_mismatch: unscheduled('(?<q>\\d+ node\\(s\\) were unschedulable)'),
  pod_anti_affinity_conflict: unscheduled("(?<q>\\d+ node\\(s\\) didn't match pod anti-affinity rules)"),
  taint_toleration_mismatch: unscheduled('(?<q>\\d+ node\\(s\\) had untolerated taint [^\\n]{0,80}?\\})'),
  pv_binding_occupied: unbound('(?<q>[\\w-]+ +\\d+Gi +\\w+ +\\w+ +Bound +[\\w-]+/[\\w-]+)'),
  pvc_access_mode_mismatch: unbound(
    '(?<q>[\\w-]+-pv +\\d+Gi +(?:ROX|RWX|RWO) +\\w+ +Available)',
    'kind: PersistentVolume\\n[\\s\\S]*?accessModes:\\s+- (?<q>\\w+)',
  ),
  pvc_capacity_mismatch: unbound(
    '(?<q>[\\w-]+-pv +\\d+\\wi +\\w+ +\\w+ +Available)',
    'kind: PersistentVolumeClaim[\\s\\S]*?requests:\\s+(?<q>storage: \\d+\\wi)',
  ),
  pvc_selector_mismatch: unbound(
    'matchLabels:\\s+(?<q>[\\w./-]+: \\S+)',
    '(?<q>no persistent volumes available for this claim)',
  ),
  pvc_storage_class_mismatch: unbound(
    '(?<q>storageclass\\S* "[\\w-]+" not found)',
    'StorageClass: +(?<q>[\\w-]+)',
    '-pvc +Pending +(?<q>[a-z][\\w-]+)',
    'storageClassName: (?<q>\\w[\\w-]+)',
  ),
  gateway_misroute: {
    says: 'The gateway sends what is for {o} to "{q}".',
    shows: ['id: {s}\\s+uri: (?<q>lb://\\$\\{\\w+:(?!{o}\\})[\\w-]+\\})'],
  },
  service_dns_resolution_failure: pods(
    'a name has no address',
    '(?<q>UnknownHostException: [\\w.-]+: Temporary failure in name resolution)',
    '(?<q>UnknownHostException: [\\w.-]+)',
    '(?<q>dnsPolicy: "None")',
  ),
  service_env_var_address_mismatch: {
    says: 'The environment of {o} has the address "{q}".',
    shows: [
      'value: "?(?<q>[\\w.-]*(?:invalid|wrong|nonexist|bad|fake|unknown|test)[\\w.-]*:\\d+)',
      'value: "?(?<q>[\\w.-]+:\\d+)',
    ],
  },
  service_port_mapping_mismatch: {
    says: 'Service {o} sends to "{q}".',
    shows: ['(?<q>targetPort: [\\w-]+)', '(?<q>TargetPort: +\\d+/TCP)'],
  },
  service_protocol_mismatch: {
    says: 'Service {o} listens at "{q}".',
    shows: ['(?:^|\\n){o} +ClusterIP +\\S+ +\\S+ +(?<q>\\d+/UDP)', '(?<q>\\d+/UDP)', '(?<q>protocol: UDP)'],
  },
  service_selector_mismatch: {
    says: 'Service {o} selects "{q}".',
    shows: [
      '(?:^|\\n)Selector: +(?<q>[\\w./-]+=[\\w.-]+)',
      'kind: Service[\\s\\S]*?selector:\\s+(?<q>[\\w./-]+: [\\w.-]+)',
    ],
  },
  image_registry_dns_failure: pods(
    'its image is not pulled',
    'lookup (?<q>[\\w.-]+ on [\\d.:]+: no such host)',
    '(?<q>no such host)',
  ),
  incorrect_image_reference: pods(
    'its image is not found',
    '(?<q>Failed to pull image "[^"\\n]+": rpc error: code = NotFound)',
    '(?<q>[\\w./:-]+: not found)',
    '(?<q>ImagePullBackOff|ErrImagePull)',
  ),
  missing_image_pull_secret: pods(
    'its image is not pulled',
    '(?<q>(?:401 Unauthorized|403 Forbidden|unauthorized|authentication required|denied))',
    '(?<q>Failed to pull image "[^"\\n]+")',
  ),
  missing_secret_binding: pods('its secret is missing', '(?<q>secret "[\\w.-]+" not found)'),
  volume_mount_permission_denied: pods('its volume is not readable', '(?<q>Permission denied)'),
}

export type CaseReading = {
  /** A path in a read-only API, built from the recorded question. */
  path: string
  /** The recorded response: text, or JSON that is served as JSON. */
  body: string
  isJson: boolean
}

export type Diagnosis = {
  claim: string
  /** The position of the deciding reading in `readings`. `words`: its deciding words. */
  at: number
  words: string
}

export type GroundingCase = {
  id: string
  category: string
  fault: string
  object: string
  readings: CaseReading[]
  /** The diagnosis; null if no reading contains proof of the cause. */
  diagnosis: Diagnosis | null
}

const metadata = z.looseObject({
  result: z.looseObject({ fault_object: z.string(), root_cause: z.string() }),
})
const trace = z.looseObject({
  diagnostic_trace: z.array(z.looseObject({ tool_name: z.string(), calling: z.string(), output: z.unknown() })),
})

/**
 * The half of the cases that is used. The table of faults was made from the cases with even
 * numbers.
 */
export type Which = 'even' | 'odd'

/**
 * Reads the recorded path of every case, in the order of folders. Throws if there is no folder
 * `benchmark`.
 */
export function readCases(directory: string, which: Which): GroundingCase[] {
  const top = join(directory, 'benchmark')
  if (!existsSync(top)) throw new Error(`${directory} has no folder benchmark: give the folder of Cloud-OpsBench`)
  const cases: GroundingCase[] = []
  for (const system of foldersIn(top)) {
    for (const category of foldersIn(join(top, system))) {
      for (const number of foldersIn(join(top, system, category)).sort((a, b) => Number(a) - Number(b))) {
        if (Number(number) % 2 !== (which === 'even' ? 0 : 1)) continue
        cases.push(...readCase(directory, [system, category, number]))
      }
    }
  }
  return cases
}

const foldersIn = (path: string): string[] =>
  readdirSync(path, { withFileTypes: true })
    .filter((each) => each.isDirectory())
    .map(({ name }) => name)
    .sort()

function readCase(directory: string, place: [string, string, string]): GroundingCase[] {
  const [system, category, number] = place
  const given = readJson(join(directory, 'benchmark', ...place, 'metadata.json'))
  const { fault_object: object, root_cause: fault } = metadata.parse(given).result
  return ['path1', 'path2'].flatMap((way) => {
    const file = join(directory, 'golden-trajectory', ...place, `${way}.json`)
    if (!existsSync(file)) return []
    const readings = trace.parse(readJson(file)).diagnostic_trace.map((step) => toReading(step))
    const name = object.split('/').at(-1) ?? object
    const diagnosis = findDiagnosis(readings, fault, name)
    return [{ id: `${system}/${category}/${number}/${way}`, category, fault, object: name, readings, diagnosis }]
  })
}

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

function toReading({
  tool_name: tool,
  calling,
  output,
}: {
  tool_name: string
  calling: string
  output?: unknown
}): CaseReading {
  const words = [...calling.matchAll(/\b\w+: '([^']*)'/g)].map(([, value]) => value)
  const path = [tool, ...words].map((word) => encodeURIComponent(word ?? '')).join('/')
  const body = unwrap(output)
  if (typeof body === 'string') return { path, body, isJson: false }
  // Uses the JSON format of the product, so that a pattern is matched against the same text that a
  // model reads.
  return { path, body: JSON.stringify(body, null, 1), isJson: true }
}

/** Parses JSON that was encoded as a text, any number of times. */
function unwrap(output: unknown): unknown {
  if (typeof output !== 'string') return output
  try {
    return unwrap(JSON.parse(output))
  } catch {
    return output
  }
}

/**
 * Finds the reading that proves the fault. Searches all readings for the first pattern of the table
 * before it tries the next pattern.
 */
function findDiagnosis(readings: readonly CaseReading[], fault: string, object: string): Diagnosis | null {
  const known = faults[fault]
  if (!known) return null
  const escaped = object.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const short = escaped.replace(/^ts-|-service$/g, '')
  for (const shows of known.shows) {
    const pattern = new RegExp(shows.replaceAll('{o}', escaped).replaceAll('{s}', short), 'm')
    for (const [at, { body }] of readings.entries()) {
      const q = pattern.exec(body)?.groups?.q
      if (q === undefined) continue
      const words = q.trim()
      const claim = known.says.replaceAll('{o}', object).replaceAll('{q}', words.replaceAll('"', ''))
      return { claim, at, words }
    }
  }
  return null
}
