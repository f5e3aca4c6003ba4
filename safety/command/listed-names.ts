import { isPlainName, kindOfNames, nameKey, namespaceOf, podName } from './known-names.ts'
import { parse, type Word } from './parse.ts'

/**
 * Reads names from the output of a command that lists. The text must be a single known command
 * without a pipe, with a known form of output, and names are taken only from their column. Other
 * columns, logs and custom formats hold untrusted text.
 */

/** Most names that are taken from one answer. */
const maxNames = 200

type Listing = {
  /** The sub-commands before the options; each spelling is a separate entry. */
  verbs: readonly string[]
  flags: string
  values: string
  read(call: ListingCall, lines: readonly string[]): string[]
}
type ListingCall = {
  words: readonly string[]
  given: [name: string, value: string][]
  operands: string[]
  kind: string
}

const has = ({ given }: ListingCall, ...names: string[]): boolean => given.some(([name]) => names.includes(name))
const optionValue = ({ given }: ListingCall, ...names: string[]): string | null =>
  given.find(([name]) => names.includes(name))?.[1] ?? null
const columns = (line: string): string[] => line.trim().split(/\s+/)
const isId = (text: string): boolean => /^[0-9a-f]{12,64}$/.test(text)

/**
 * Reads the first and last column of the table, after its header. Commas separate the names of
 * links.
 */
function readContainers(call: ListingCall, lines: readonly string[]): string[] {
  const format = optionValue(call, '--format')
  if (has(call, '-q', '--quiet')) return lines.filter(isId)
  if (format !== null) return /^\{\{ ?\.(?:Names|ID) ?\}\}$/.test(format) ? [...lines] : []
  const [header = '', ...rows] = lines
  if (!/^CONTAINER ID\s+IMAGE\s.*\sNAMES$/.test(header.trim())) return []
  return rows.flatMap((row) => [columns(row)[0] ?? '', ...(columns(row).at(-1) ?? '').split(',')])
}

function readSandboxed(call: ListingCall, lines: readonly string[]): string[] {
  if (has(call, '-q', '--quiet')) return lines.filter(isId)
  return /^CONTAINER\s+IMAGE\s/.test(lines[0] ?? '') ? lines.slice(1).map((row) => columns(row)[0] ?? '') : []
}

const firstColumn = (header: RegExp, lines: readonly string[]): string[] =>
  header.test(lines[0] ?? '') ? lines.slice(1).map((row) => columns(row)[0] ?? '') : []

const containerListing = {
  flags: '-a --all -q --quiet --no-trunc -l --latest',
  values: '-n --last -f --filter --format',
  read: readContainers,
} as const

const composeListing: Listing = {
  verbs: ['ps', 'compose ps'],
  flags: '-a --all --services',
  values: '--status --filter -f --file -p --project-name --project-directory',
  read: (call, lines) => (has(call, '--services') ? [...lines] : []),
}

const listings: Readonly<Record<string, readonly Listing[]>> = {
  docker: [{ verbs: ['ps', 'container ls', 'container ps', 'container list'], ...containerListing }, composeListing],
  podman: [{ verbs: ['ps', 'container ls', 'container ps', 'container list'], ...containerListing }],
  nerdctl: [{ verbs: ['ps', 'container ls'], ...containerListing }],
  'docker-compose': [composeListing],
  crictl: [
    {
      verbs: ['ps'],
      flags: '-a --all -q --quiet -l --latest --no-trunc',
      values: '--name --pod -p --state -s --label --namespace',
      read: readSandboxed,
    },
  ],
  pct: [{ verbs: ['list'], flags: '', values: '', read: (_, lines) => firstColumn(/^VMID\s+Status\s/, lines) }],
  ip: [
    {
      verbs: ['netns', 'netns list', 'netns ls', 'netns show'],
      flags: '',
      values: '',
      read: (_, lines) => lines.filter((line) => /^\S+(?: \(id: \d+\))?$/.test(line)).map((line) => columns(line)[0]!),
    },
  ],
  aws: [
    {
      verbs: ['s3 ls'],
      flags: '',
      values: '--region --profile',
      read: (_, lines) => lines.flatMap((line) => /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (\S+)$/.exec(line)?.[1] ?? []),
    },
  ],
  gsutil: [{ verbs: ['ls'], flags: '', values: '', read: readBuckets }],
  gcloud: [{ verbs: ['storage ls'], flags: '', values: '--project', read: readBuckets }],
}

function readBuckets(_: ListingCall, lines: readonly string[]): string[] {
  return lines.flatMap((line) => /^gs:\/\/([^/]+)\/$/.exec(line)?.[1] ?? [])
}

const buckets: ReadonlySet<string> = new Set(['aws', 'gsutil', 'gcloud'])

const clusterOptions = {
  flags: '-A --all-namespaces --no-headers --show-labels -w=false --watch=false',
  values: '-n --namespace -o --output -l --selector --field-selector --sort-by --context --cluster --request-timeout',
}

/**
 * Reads `kubectl get pods`: the first column, or the one after the namespace if all namespaces are
 * listed.
 */
function readPods(call: ListingCall, lines: readonly string[]): { namespace: string; name: string }[] {
  const [kind = '', ...more] = call.operands
  if (more.length > 0 || podName(kind, 'x') === null) return []
  const output = optionValue(call, '-o', '--output') ?? ''
  const isEverywhere = has(call, '-A', '--all-namespaces')
  const namespace = namespaceOf(call.given)
  if (output === 'name') {
    if (isEverywhere) return []
    return lines.flatMap((line) => {
      const [, kindOf = '', name = ''] = /^([a-z.]+)\/(\S+)$/.exec(line) ?? []
      return isPlainName(name) ? [{ namespace, name: podName(kindOf, name) ?? '' }] : []
    })
  }
  if (output !== '' && output !== 'wide') return []
  const isHeaded = !has(call, '--no-headers')
  if (isHeaded && !(isEverywhere ? /^NAMESPACE\s+NAME\s/ : /^NAME\s/).test(lines[0] ?? '')) return []
  return lines.slice(isHeaded ? 1 : 0).flatMap((line) => {
    const [first = '', second = ''] = columns(line)
    const [within, name] = isEverywhere ? [namespaceOf([...call.given, ['-n', first]]), second] : [namespace, first]
    return isPlainName(name) ? [{ namespace: within, name: podName(kind, name) ?? '' }] : []
  })
}

/** Returns the words of a text that is exactly one command; null for any other. */
function onlyCommand(command: string | readonly string[]): Word[] | null {
  if (typeof command !== 'string')
    return command.map((text) => ({ text, literal: true, quoting: 'bare', pattern: null }))
  const tree = command.length <= 2_000 ? parse(command) : null
  const [pipeline, another] = tree?.pipelines ?? []
  const simple = pipeline?.[0]
  if (!tree || !simple || another || pipeline.length > 1) return null
  if (tree.nested.length > 0 || tree.shapes.length > 0 || tree.error) return null
  const isBare = simple.assignments.length === 0 && simple.redirections.length === 0 && simple.input === null
  return isBare && simple.words.every(({ literal }) => literal) ? [...simple.words] : null
}

/**
 * Reads the options and operands of a listing; null for an unknown word, which may change the
 * output.
 */
function readCall(words: readonly Word[], { flags, values }: Pick<Listing, 'flags' | 'values'>): ListingCall | null {
  const [known, valued] = [flags.split(' '), values.split(' ')]
  const texts = words.map(({ text }) => text)
  const call: ListingCall = { words: texts, given: [], operands: [], kind: kindOfNames(words) }
  for (let at = 1; at < texts.length; at += 1) {
    const text = texts[at]!
    const [, long = '', attached] = /^(--[\w-]+)=(.*)$/s.exec(text) ?? []
    if (known.includes(text)) call.given.push([text, ''])
    else if (attached !== undefined && valued.includes(long)) call.given.push([long, attached])
    else if (valued.includes(text) && texts[at + 1] !== undefined) {
      call.given.push([text, texts[at + 1]!])
      at += 1
    } else if (/^-[a-z]{2,3}$/.test(text) && [...text.slice(1)].every((letter) => known.includes(`-${letter}`)))
      for (const letter of text.slice(1)) call.given.push([`-${letter}`, ''])
    else if (text.startsWith('-')) return null
    else call.operands.push(text)
  }
  return call
}

/** Lists the names that a command printed, by kind and namespace; none for an unknown command. */
export function namesListed(command: string | readonly string[], output: string): string[] {
  const words = onlyCommand(command)
  const program = words?.[0]?.text
  if (!words || program === undefined) return []
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const found: string[] = []
  if (kindOfNames(words) === 'pod' && (program === 'kubectl' || program === 'oc')) {
    const call = readCall(words, clusterOptions)
    if (call?.operands[0] !== 'get') return []
    const pods = readPods({ ...call, operands: call.operands.slice(1) }, lines)
    for (const { namespace, name } of pods) if (name !== '') found.push(nameKey('pod', namespace, name))
    return found.slice(0, maxNames)
  }
  for (const listing of Object.hasOwn(listings, program) ? listings[program]! : []) {
    const call = readCall(words, listing)
    if (!call || !listing.verbs.includes(call.operands.join(' '))) continue
    const kind = buckets.has(program) ? 'bucket' : call.kind
    const namespace = buckets.has(program) ? '' : namespaceOf(call.given)
    for (const name of listing.read(call, lines)) if (isPlainName(name)) found.push(nameKey(kind, namespace, name))
  }
  return [...new Set(found)].slice(0, maxNames)
}
