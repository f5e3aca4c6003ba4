import type { Word } from './parse.ts'

/**
 * Forms of a command that run without approval. Code itself applies forms with the same answer, as
 * it limits endless commands. Forms with another answer are only named in the reason.
 */

type Form = (texts: readonly string[]) => string[] | null

const baseName = (text: string): string => text.slice(text.lastIndexOf('/') + 1)

/**
 * Returns the arguments without an option, which may also be one letter of `-abc`; null if the
 * option is absent.
 */
function without(texts: readonly string[], letter: string, long: string): string[] | null {
  const left = texts.flatMap((text) => {
    if (text === long || text === `-${letter}`) return []
    return new RegExp(`^-[a-zA-Z]*${letter}[a-zA-Z]*$`).test(text) ? [text.replace(letter, '')] : [text]
  })
  return left.join(' ') === texts.join(' ') ? null : left
}

const adding =
  (option: string): Form =>
  (texts) =>
    texts.includes(option) ? null : [texts[0]!, option, ...texts.slice(1)]

/** Forms with the same answer that do less, or obey fewer settings. */
const saferForms: Readonly<Record<string, Form>> = {
  // Removes -L, so that the answer of the named server itself is shown. A command without -L gets
  // -q, so that the user's .curlrc is ignored.
  curl: (texts) => without(texts, 'L', '--location') ?? adding('-q')(texts),
  // Uses the data that was last fetched, without the network.
  dnf: adding('-C'),
  yum: adding('-C'),
  // Ignores the user's .digrc.
  dig: adding('-r'),
  // Ignores the user's .mongoshrc.js.
  mongosh: adding('--norc'),
  mongo: adding('--norc'),
}

/** Returns the form of a command that code may use in its place; null if there is none. */
export function saferForm(words: readonly Word[]): string[] | null {
  const name = baseName(words[0]?.text ?? '')
  if (!Object.hasOwn(saferForms, name) || !words.every(({ literal }) => literal)) return null
  return saferForms[name]!(words.map(({ text }) => text))
}

/**
 * Forms to suggest, by the original command; `$1` is a group of the pattern. A test tries each row.
 */
const otherForms: readonly { asked: RegExp; instead: string }[] = [
  {
    asked:
      /^(?:kubectl|oc)((?: -n \S+)?) describe (pods?|po|deploy\w*|sts|statefulsets?|ds|daemonsets?|jobs?) ([\w.-]+)((?: -n \S+)?)$/,
    instead: 'kubectl$1$4 get $2 $3 -o wide; kubectl$1$4 events --for $2/$3',
  },
  {
    asked: /^(?:kubectl|oc)((?: -n \S+)?) describe ([a-z][\w.-]*) ([\w.-]+)((?: -n \S+)?)$/,
    instead: "kubectl$1$4 get $2 $3 -o jsonpath='{.status.conditions}'",
  },
  {
    asked:
      /^(?:kubectl|oc)((?: -n \S+)?) get ([a-z][\w.-]*) ([\w.-]+)((?: -n \S+)?) (?:-o ?|-o=|--output[= ])(?:yaml|json)$/,
    instead: "kubectl$1$4 get $2 $3 -o jsonpath='{.status.conditions}'",
  },
  // Names the socket explicitly, because a path alone would be created as a file if there is no
  // such socket.
  { asked: /^socat (-|stdio|STDIO) (\/[\w./-]+)$/, instead: 'socat $1 UNIX-CONNECT:$2' },
  { asked: /^docker inspect ([\w.-]+)$/, instead: "docker inspect -f '{{json .State}}' $1" },
  { asked: /^git (?:-C \S+ )?(?:show|log|diff)\b.*$/, instead: 'the tools git_show and git_log' },
  { asked: /^(?:cat|head|tail|less|more|strings|xxd|od|base64) (?:-\S+ )*(\/[\w./-]+)$/, instead: 'stat $1' },
  { asked: /^grep (?:-\S+ )*\S+ (\/[\w./-]+)$/, instead: 'stat $1' },
  { asked: /^helm((?: -n \S+)?) get \w+ ([\w.-]+)((?: -n \S+)?)$/, instead: 'helm$1$3 status $2; helm$1$3 history $2' },
  { asked: /^argocd app (?:diff|manifests) ([\w.-]+)$/, instead: 'argocd app list; argocd app history $1' },
  { asked: /^terraform (?:show|plan|output)\b.*$/, instead: 'terraform state list' },
  { asked: /^pcs (?:config|cluster cib)\b.*$/, instead: 'pcs status --full; pcs constraint list' },
  {
    asked: /^(?:py-spy|gdb|strace|perf|bpftrace)\b.* (?:-p|--pid)[ =](\d+)\b.*$/,
    instead: 'top -b -n 1 -p $1; cat /proc/$1/status',
  },
  { asked: /^docker compose config\b.*$/, instead: 'docker compose ps' },
]

/**
 * Names a form that would run without approval, for the reason of the verdict; null if none is
 * known.
 */
export function nameOtherForm(words: readonly Word[]): string | null {
  const name = baseName(words[0]?.text ?? '')
  const text = [name, ...words.slice(1).map(({ text }) => text)].join(' ')
  if (text.length > 1_000) return null
  for (const { asked, instead } of otherForms) {
    const found = asked.exec(text)
    if (found) return instead.replace(/\$(\d)/g, (_, group: string) => found[Number(group)] ?? '')
  }
  return null
}
