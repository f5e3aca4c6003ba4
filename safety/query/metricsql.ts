import { parser } from '@prometheus-io/lezer-promql'

/**
 * Detects parts of a query that PromQL lacks: MetricsQL
 * (https://docs.victoriametrics.com/metricsql/) and Grafana's variables, which models write. Names
 * each, with the form in PromQL if there is one; that form is judged like any other query.
 */

type Foreign = { reason: string; form: string | null }

/**
 * `has`: a pattern that is searched for outside texts and comments. `becomes`: the form in PromQL;
 * null if there is none.
 */
type Feature = { has: RegExp; says: string; becomes: string | ((...found: string[]) => string) | null }

const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800, y: 31_536_000 }
const suffixes: Readonly<Record<string, number>> = { K: 1e3, M: 1e6, G: 1e9, T: 1e12 }
const binary: Readonly<Record<string, number>> = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 }

/**
 * Functions of MetricsQL with their form in PromQL; `(` at the end means that the rest of the call
 * stays.
 */
const functions: Readonly<Record<string, string>> = {
  median_over_time: 'quantile_over_time(0.5, ',
  median: 'quantile(0.5, ',
  increase_pure: 'increase(',
  rollup_rate: 'rate(',
  rollup_increase: 'increase(',
  rollup_delta: 'delta(',
  rollup_deriv: 'deriv(',
  default_rollup: 'last_over_time(',
  keep_last_value: 'last_over_time over a range',
  topk_avg: 'topk(k, avg_over_time(x[1h]))',
  topk_max: 'topk(k, max_over_time(x[1h]))',
  topk_last: 'topk(k, x)',
  bottomk_avg: 'bottomk(k, avg_over_time(x[1h]))',
  label_set: 'label_replace(x, "label", "value", "", "")',
  label_copy: 'label_replace(x, "to", "$1", "from", "(.*)")',
  label_del: 'sum without (label) (x)',
  label_match: 'a matcher in the selector',
  union: 'a or b',
  lag: 'time() - timestamp(x)',
  range_quantile: 'quantile_over_time(0.9, x[1h:1m])',
  range_avg: 'avg_over_time(x[1h:1m])',
  range_max: 'max_over_time(x[1h:1m])',
  range_min: 'min_over_time(x[1h:1m])',
  share_gt_over_time: 'avg_over_time((x > bool 1)[1h:1m])',
  count_eq_over_time: 'count_over_time((x == 1)[1h:1m])',
  distinct_over_time: 'changes(x[1h])',
}

const features = (stepSeconds: number): Feature[] => [
  { has: /^\s*WITH\s*\(/i, says: 'WITH templates: write the expression in place of its name', becomes: null },
  {
    has: /\[(\d+)i\]/g,
    says: 'a range in steps (5i): write 5m',
    becomes: (_, steps = '1') => `[${Number(steps) * stepSeconds}s]`,
  },
  {
    has: /\b(\d+\.\d+)([smhdwy])(?!\w)/g,
    says: 'a fraction of a duration (1.5h): write 90m',
    becomes: (_, count = '1', unit = 's') => `${Math.round(Number(count) * (units[unit] ?? 1))}s`,
  },
  {
    has: /(?<![\w.])(\d+(?:\.\d+)?)([KMGT])(i?)B?(?!\w)/g,
    says: 'a number with a suffix (512Mi): write the whole number',
    becomes: (_, number = '0', unit = 'K', isBinary = '') =>
      String(Number(number) * (isBinary ? binary : suffixes)[unit]!),
  },
  { has: /\s+keep_metric_names\b/g, says: 'keep_metric_names: leave it out', becomes: '' },
  { has: /(?<=[\w)}\]]\s*)\bifnot\b/g, says: '"ifnot": PromQL writes unless', becomes: 'unless' },
  { has: /(?<=[\w)}\]]\s*)\bif\b/g, says: '"if": PromQL writes and', becomes: 'and' },
  {
    has: /\bdefault\s+(-?\d+(?:\.\d+)?)/g,
    says: '"default": PromQL writes or vector(0), which has no labels',
    becomes: (_, number = '0') => `or vector(${number})`,
  },
  { has: /\bdefault\s+(?!-?\d)/g, says: '"default": PromQL writes or', becomes: 'or ' },
  { has: /\blimit\s+\d+/g, says: '"limit": PromQL writes topk(5, …)', becomes: null },
  { has: /\{[^{}]*\S\s+or\s+\w[^{}]*\}/g, says: '"or" inside braces: PromQL writes a{…} or a{…}', becomes: null },
]

/**
 * Names the part of a query that makes it invalid because it is not PromQL; null if no such part is
 * known.
 */
export function describeForeign(promql: string, stepSeconds: number): Foreign | null {
  const variable = /\$\{?__\w+\}?/
  if (variable.test(promql))
    return {
      reason: 'the query has a Grafana variable: write a range, as 5m',
      form: promql.replace(new RegExp(variable, 'g'), '5m'),
    }
  const bare = outsideTexts(promql, (text) => text)
  const found = features(stepSeconds).filter(({ has }) => bare.search(has) >= 0)
  const [called] = [...bare.matchAll(/([A-Za-z_]\w*)\s*\(/g)]
    .map(([, name = '']) => name)
    .filter((name) => Object.hasOwn(functions, name.toLowerCase()) && !isPromql(name))
  const words = called === undefined ? null : functions[called.toLowerCase()]!
  const says = [
    ...found.map(({ says }) => says),
    ...(called === undefined || !words ? [] : [`${called}: PromQL has ${words.replace(/\(.?$|\(0\.5, $/, '')}`]),
  ]
  if (says.length === 0) return null
  let form: string | null = promql
  for (const { has, becomes } of found)
    form =
      form === null || becomes === null ? null : outsideTexts(form, (text) => text.replace(has, becomes as string), '')
  if (called !== undefined && words && form !== null)
    form = /[(,]\s?$/.test(words) ? form.replaceAll(new RegExp(`\\b${called}\\s*\\(`, 'g'), () => words) : null
  return { reason: `the query is MetricsQL, not PromQL: ${says.join('; ')}`, form: form ?? splitFilters(promql) }
}

/** Splits a selector without a range, such as `{a="b" or c="d"}`, into two selectors. */
function splitFilters(promql: string): string | null {
  const text = `(?:"(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*')`
  const filters = `\\s*\\w+\\s*[=!]~?\\s*${text}(?:\\s*,\\s*\\w+\\s*[=!]~?\\s*${text})*\\s*`
  const split = promql.replace(
    new RegExp(`([A-Za-z_:][\\w:]*)?\\{(${filters}(?:\\bor\\b${filters})+)\\}(?!\\s*\\[)`, 'g'),
    (_, name = '', all: string) => {
      const parts = [...all.matchAll(new RegExp(`(?:^|\\bor\\b)(${filters})`, 'g'))].map(([, part = '']) => part.trim())
      return `(${parts.map((part) => `${name}{${part}}`).join(' or ')})`
    },
  )
  return split === promql ? null : split
}

/**
 * Changes the query outside of texts and comments. `instead` replaces texts and comments for a
 * search.
 */
function outsideTexts(promql: string, change: (text: string) => string, instead: '' | '"' = '"'): string {
  return promql
    .split(/("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|#[^\n]*)/)
    .map((part, at) => (at % 2 === 0 ? change(part) : instead === '' ? part : '""'))
    .join('')
}

/** Whether PromQL has a function or an aggregation with this name. */
function isPromql(name: string): boolean {
  let isKnown = false
  parser.parse(`${name}(x)`).iterate({
    enter({ type }) {
      if (type.name === 'FunctionIdentifier' || type.name === 'AggregateOp') isKnown = true
    },
  })
  return isKnown
}
