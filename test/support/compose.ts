import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { z } from 'zod'

/**
 * The parts of the Compose Specification (github.com/compose-spec/compose-spec) that our file uses, strictly: what is not listed here is
 * a slip, or is to be looked up and added. It takes the place of `docker compose config` where there is no container engine.
 */
const duration = z.string().regex(/^(\d+(us|ms|s|m|h))+$/)
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])
const words = z.union([z.string(), z.array(z.string())])

const service = z.strictObject({
  build: z.string().optional(),
  image: z.string(),
  profiles: z.array(z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/)).optional(),
  restart: z.enum(['no', 'always', 'on-failure', 'unless-stopped']).optional(),
  read_only: z.boolean().optional(),
  tmpfs: z.array(z.string().startsWith('/')).optional(),
  security_opt: z.array(z.string()).optional(),
  cap_drop: z.array(z.string()).optional(),
  depends_on: z
    .record(
      z.string(),
      z.strictObject({
        condition: z.enum(['service_started', 'service_healthy', 'service_completed_successfully']),
        required: z.boolean().default(true),
      }),
    )
    .default({}),
  environment: z.record(z.string().regex(/^[A-Z_][A-Z0-9_]*$/), scalar).default({}),
  entrypoint: words.optional(),
  command: words.optional(),
  ports: z.array(z.string().regex(/^([\d.]+:)?\d+:\d+$/)).optional(),
  volumes: z.array(z.string().regex(/^[^:]+:\/[^:]+(:ro)?$/)).default([]),
  healthcheck: z
    .strictObject({
      test: z.array(z.string()).min(2),
      interval: duration,
      timeout: duration,
      start_period: duration.optional(),
      retries: z.number().int(),
    })
    .optional(),
  stop_grace_period: duration.optional(),
})

const project = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9_-]*$/),
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.null()),
})

export type Project = z.infer<typeof project>

/** The file as Compose takes it with these variables and nothing else. Throws what Compose would refuse. */
export function composed(file: string, variables: Record<string, string>): Project {
  const raw = parse(readFileSync(file, 'utf8'), { merge: true }) as Record<string, unknown>
  const own = Object.fromEntries(Object.entries(raw).filter(([name]) => !name.startsWith('x-')))
  return project.parse(everyText(own, (text) => interpolated(text, variables)))
}

function everyText(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((each) => everyText(each, change))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, everyText(each, change)]))
}

/** `${A}`, `${A-x}`, `${A:-x}`, `${A:?x}` with others of them in x, and `$$` for a dollar. */
function interpolated(text: string, variables: Record<string, string>): string {
  let result = ''
  for (let at = 0; at < text.length; ) {
    if (text[at] !== '$') {
      result += text[at]
      at += 1
    } else if (text[at + 1] === '$') {
      result += '$'
      at += 2
    } else {
      const end = closing(text, at)
      result += substituted(text.slice(at + 2, end), variables)
      at = end + 1
    }
  }
  return result
}

function closing(text: string, from: number): number {
  if (text[from + 1] !== '{') throw new Error(`a dollar that is neither $$ nor \${…}: ${text}`)
  let depth = 0
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1
    if (text[at] === '}') depth -= 1
    if (depth === 0) return at
  }
  throw new Error(`a brace that is not closed: ${text}`)
}

function substituted(inner: string, variables: Record<string, string>): string {
  const [, name = '', operator = '', rest = ''] = /^([A-Za-z_]\w*)(?:(:?[-?])([\s\S]*))?$/.exec(inner) ?? []
  if (!name) throw new Error(`not a variable: ${inner}`)
  const value = variables[name]
  const isThere = operator.startsWith(':') ? Boolean(value) : value !== undefined
  if (isThere || operator === '') return value ?? ''
  if (operator.endsWith('?')) throw new Error(`${name} is required: ${rest}`)
  return interpolated(rest, variables)
}
