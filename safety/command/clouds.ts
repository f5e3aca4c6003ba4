import { awsCalls, azCalls, gcloudCalls, gcloudCarriers } from './cloud-calls.ts'
import { awsCarriers, namesShownFields } from './cloud-fields.ts'

/**
 * Reads command lines of cloud clients. Only the listed calls count as reads, and only without
 * options that show more than the call's usual answer.
 */

export type CloudName = 'aws' | 'gcloud' | 'az' | 'openstack' | 'hcloud' | 'doctl'

/**
 * Returns the reason why a command line does more than read; null if it only reads. `words`: the
 * arguments after the program's name.
 */
/** Matches a queue's address, from which aws takes the address of the service. */
const isQueue = (word: string, before: string | undefined): boolean =>
  /^(?:--queue-url=)?https:\/\/(?:sqs\.[\w-]+|[\w-]+\.queue)\.amazonaws\.com\/\d{1,12}\/[\w.-]+$/.test(word) &&
  (before === '--queue-url' || word.startsWith('--queue-url='))

/** Options that lead to another server, read a file or show more. */
const farOptions =
  'endpoint-url profile-file cli-input cli-auto generate-cli ca-bundle no-verify no-sign debug access-token impersonate flags-file log-http account configuration with-decryption include-secret show-secret'.split(
    ' ',
  )

/**
 * Whether the word is an option of `farOptions`, shortened or extended, because the parsers accept
 * any unambiguous beginning of an option.
 */
function isFar(word: string): boolean {
  const name = /^--([\w-]{2,})/.exec(word)?.[1]
  if (name === undefined || name === 'profile' || name === 'no') return false
  return farOptions.some((far) => far.startsWith(name) || name.startsWith(far))
}

export function inspectCloud(name: CloudName, words: readonly string[]): string | null {
  const elsewhere = words.find(isFar)
  if (elsewhere) return `${elsewhere} may use another server or account, read a file or show more`
  const file = words.find(
    (word, at) =>
      /^(?:--[\w-]+=)?(?:@|fileb?:|https?:)/i.test(word) && !(name === 'aws' && isQueue(word, words[at - 1])),
  )
  if (file) return `${file} reads a file or an address`
  return rules[name](words)
}

type Rule = (words: readonly string[]) => string | null

const rules: Readonly<Record<CloudName, Rule>> = {
  aws,
  gcloud,
  az,
  openstack: (words) => inspectByList(openstack, words),
  hcloud: (words) => inspectByList(hcloud, words),
  doctl: (words) => inspectByList(doctl, words),
}

/** Matches global options with a value, which may precede the service. */
const before =
  /^--(?:region|output|query|profile|color|max-items|page-size|project|format|filter|limit|zone|quiet|subscription|resource-group)$/

/** Returns the words before the first option that is not global, without the global options. */
function path(words: readonly string[]): string[] {
  const found: string[] = []
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!
    if (before.test(word)) at += 1
    else if (/^--(?:[\w-]+=|no-cli-pager$|no-paginate$|quiet$)/.test(word)) continue
    else if (word.startsWith('-')) break
    else found.push(word)
  }
  return found
}

function aws(words: readonly string[]): string | null {
  if (words.length === 1 && words[0] === '--version') return null
  const [service, operation] = path(words)
  if (!service || !operation) return 'a service and an operation are missing'
  const call = `${service} ${operation}`
  // Checks the region, which is part of the name of the host that is called.
  if (valuesOf(words, '--reg').some((region) => !/^[a-z0-9-]+$/.test(region))) return 'the region is not a plain name'
  if (awsCarriers.has(call)) {
    const [query, ...others] = valuesOf(words, '--q')
    return query !== undefined && others.length === 0 && namesShownFields(query)
      ? null
      : `${call} shows environments or inputs: name fields with --query`
  }
  if (!awsCalls.has(call)) return `${call} is not on the list of calls that show no secret`
  if (call === 's3api list-objects-v2' && !onlyOf(words, '--max-i', /^\d{1,3}$/))
    return 'lists every object of a bucket'
  if (call === 'logs tail' && words.some((word) => /^--fo/.test(word))) return 'follows the log for ever'
  return call === 's3 ls' && words.includes('--recursive') ? 'lists every object of a bucket' : null
}

/** Reads Google Cloud CLI: groups, then a verb, then operands. The longest listed call counts. */
function gcloud(words: readonly string[]): string | null {
  if (words.length === 1 && /^(?:version|info|--version)$/.test(words[0] ?? '')) return null
  const said = path(words)
  if (said[0] === 'alpha' || said[0] === 'beta') said.shift()
  const call = longest(said, gcloudCalls)
  if (call === null) return `${said.slice(0, 4).join(' ')} is not on the list of calls that show no secret`
  if (!gcloudCarriers.has(call)) return null
  const formats = valuesOf(words, '--fo')
  const isNarrow = formats.length === 1 && isNarrowProjection(formats[0]!) && !words.some((word) => /^--fl/.test(word))
  if (formats.length === 0 ? call.endsWith(' list') : isNarrow) return null
  return `${call} shows environments or scripts: name fields with --format='value(…)'`
}

function longest(said: readonly string[], listed: ReadonlySet<string>): string | null {
  for (let length = Math.min(4, said.length); length > 1; length -= 1) {
    const call = said.slice(0, length).join(' ')
    if (listed.has(call)) return call
  }
  return null
}

/** Lists the values of an option, whose name may be shortened; the last one counts. */
function valuesOf(words: readonly string[], beginning: string): string[] {
  return words.flatMap((word, at) => {
    if (!word.startsWith(beginning)) return []
    return word.includes('=') ? word.slice(word.indexOf('=') + 1) : (words[at + 1] ?? '')
  })
}

function onlyOf(words: readonly string[], beginning: string, shape: RegExp): boolean {
  const values = valuesOf(words, beginning)
  return values.length === 1 && shape.test(values[0]!)
}

/**
 * Fields, each with everything below it, that may be shown of resources with environments and
 * scripts.
 */
const gcloudFields = new Set(
  `name id uid status state phase zone region location project projectId creationTimestamp createTime updateTime startTime finishTime endTime duration
   machineType cpuPlatform selfLink networkInterfaces networkIP natIP internalIp externalIp disks deviceName diskSizeGb endpoint currentMasterVersion
   currentNodeVersion currentNodeCount nodeVersion version url uri traffic percent revisionName latestReadyRevisionName latestCreatedRevisionName conditions
   ready message reason generation observedGeneration labels tags preemptible scheduling lastStartTimestamp lastStopTimestamp statusDetail statusMessage
   buildTriggerId source logUrl images runtime entryPoint timeout availableMemory availableMemoryMb maxInstances minInstances versionId trafficSplit
   servingStatus service currentState schedule timeZone lastAttemptTime nextScheduleTime attemptDeadline filename disabled description type jobName`.split(
    /\s+/,
  ),
)

/**
 * Whether a format consists of plain paths to listed fields, with headings. A function or a whole
 * object is refused.
 */
function isNarrowProjection(format: string): boolean {
  const inside = /^(?:value|table|csv|get)(?:\[[\w=, -]*\])?\(([\w.,:=\s[\]()*-]*)\)$/.exec(format)?.[1]
  if (inside === undefined) return false
  return inside.split(',').every((column) => {
    const [, path = ''] =
      /^\s*([A-Za-z][\w.]*(?:\[\d*\][\w.]*)*)(?:\.(?:basename|date|scope|len|yesno)\(\))?(?::[\w=:-]+)*\s*$/.exec(
        column,
      ) ?? []
    const fields = path.replace(/\[\d*\]/g, '').split('.')
    // Checks only the last field of a path, because a field on the way is not shown itself.
    return gcloudFields.has(fields.at(-1)!) && !fields.some((field) => /^(?:env|auth|headers)/i.test(field))
  })
}

/** Reads Azure CLI: groups and a verb; everything else is an option. */
function az(words: readonly string[]): string | null {
  if (words.length === 1 && (words[0] === '--version' || words[0] === 'version')) return null
  const call = path(words).join(' ')
  return azCalls.has(call) ? null : `${call || 'it'} is not on the list of calls that show no secret`
}

/**
 * Rules for cloud clients whose commands are an object and a verb. Other objects, verbs and options
 * need approval. None of the listed commands shows keys, start scripts or environments.
 */
type ListRule = {
  things: ReadonlySet<string>
  verbs: ReadonlySet<string>
  /** Complete commands that are also allowed. */
  alone: ReadonlySet<string>
  /** Options with and without a value. */
  valued: ReadonlySet<string>
  flags: ReadonlySet<string>
  /** Returns the reason why a command may not have its options. */
  but?: (call: string, options: readonly string[]) => string | null
}

const set = (text: string, by: string | RegExp = /\s+/): ReadonlySet<string> =>
  new Set(
    text
      .trim()
      .split(by)
      .map((word) => word.trim()),
  )

const outputs = (options: readonly string[]): string => options.join(' ')

const openstack: ListRule = {
  things: set(
    `server, hypervisor, hypervisor stats, compute service, compute agent, network, network agent, subnet, port, router, floating ip, security group,
     security group rule, volume, volume service, volume type, volume snapshot, volume backup, image, flavor, keypair, endpoint, service, project, domain, region,
     user, role, role assignment, quota, limits, usage, catalog, aggregate, availability zone, host, server event, server migration, server group, loadbalancer,
     loadbalancer listener, loadbalancer pool, loadbalancer member, loadbalancer healthmonitor, loadbalancer status, loadbalancer amphora, coe cluster,
     object, recordset, zone, extension, baremetal node, baremetal port, resource provider, resource provider inventory, resource provider usage, allocation candidate, share, dns zone, network trunk, network rbac, consistency group, volume attachment, volume group, hypervisor, orchestration service, ip availability, network qos policy, address scope, subnet pool`,
    ',',
  ),
  verbs: set('list show'),
  alone: set('stack list, stack resource list, stack event list, versions show, loadbalancer stats show', ','),
  valued: set(
    '-f --format -c --column --sort --sort-column --limit --status --name --host --project --os-cloud --marker --server --network --max-width --user --image --flavor --ip --ip-address --router --state --service --interface --agent-type --tags',
  ),
  flags: set(
    '--long --all-projects --all --noindent --fit-width --print-empty --deleted --no-name-lookup -n --matching --absolute --names --effective --public --private --ingress --egress --external',
  ),
  // Refuses to show a server as a whole, because the output includes properties and a start script.
  but: (call, options) =>
    /^(?:server|stack|coe cluster|loadbalancer amphora) show$/.test(call) &&
    (!/(?:^| )(?:-c|--column)/.test(outputs(options)) ||
      /user_data|propert|metadata|config|label/i.test(outputs(options)))
      ? `${call} shows scripts or settings: name columns with -c`
      : null,
}

const hcloud: ListRule = {
  things: set(
    'server, load-balancer, volume, network, floating-ip, primary-ip, firewall, image, iso, location, datacenter, server-type, load-balancer-type, placement-group, ssh-key, certificate',
    ',',
  ),
  verbs: set('list describe metrics'),
  alone: set('version, context list, context active, all list', ','),
  valued: set('-o --output -l --selector -s --sort --type --start --end --status'),
  flags: set('--poll-interval'),
}

const doctl: ListRule = {
  things: set(
    `compute droplet, compute volume, compute load-balancer, compute firewall, compute snapshot, compute image, compute region, compute size, compute domain,
     compute domain records, compute certificate, compute reserved-ip, compute floating-ip, compute cdn, compute action, compute tag, compute ssh-key,
     kubernetes cluster, kubernetes cluster node-pool, databases, account, balance, apps, projects, registry, registry repository, monitoring alert, monitoring uptime, vpcs`,
    ',',
  ),
  verbs: set('list ls get'),
  alone: set('version, account ratelimit, apps logs, registry repository list-v2, registry repository list-tags', ','),
  valued: set('--format -o --output --tail --tag-name --region --type'),
  flags: set('--no-header --no-wait'),
  // Refuses to show these objects as a whole, because the output includes passwords, keys and
  // environments. The address of a database contains its password.
  but: (call, options) => {
    const given = options.join(' ')
    if (/^(?:databases|apps|kubernetes cluster) /.test(call) && /(?:^| )(?:-o|--output)/.test(given))
      return `${call} shows passwords in this format`
    const isNarrow = /(?:^| )--format[ =]/.test(given) && !/uri|pass|conn|spec|user/i.test(given)
    return /^(?:databases|apps (?:get|list|ls)|kubernetes cluster get)\b/.test(call) && !isNarrow
      ? `${call} shows passwords or settings: name columns with --format`
      : null
  },
}

/**
 * Returns the reason why, by this rule, the arguments do more than read; null if they only read.
 */
function inspectByList(rule: ListRule, words: readonly string[]): string | null {
  const said: string[] = []
  const options: string[] = []
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!
    if (!word.startsWith('-')) said.push(word)
    else if (rule.flags.has(word)) options.push(word)
    else if (rule.valued.has(word)) {
      const value = words[at + 1] ?? ''
      if (value === '' || value.startsWith('-')) return `${word} lacks a value`
      options.push(word, value)
      at += 1
    } else if (rule.valued.has(word.replace(/=.*$/s, '')) && word.startsWith('--')) options.push(word)
    else return `${word} is not a known read-only option`
  }
  const odd = [...said, ...options].find((word) => !/^[\w@=%.,:+*-][\w@=%.,:+*/ -]*$/.test(word))
  if (odd !== undefined) return `${odd} is not a plain word`
  if (said.join(' ') === 'version' || (words.length === 1 && words[0] === '--version')) return null
  for (let length = Math.min(4, said.length); length > 1; length -= 1) {
    const call = said.slice(0, length).join(' ')
    const thing = said.slice(0, length - 1).join(' ')
    if (rule.alone.has(call) || (rule.things.has(thing) && rule.verbs.has(said[length - 1]!)))
      return rule.but?.(call, options) ?? null
  }
  return `${said.slice(0, 3).join(' ')} is not known as read-only`
}
