import { readFileSync } from 'node:fs'
import { z } from 'zod'

/** The environment's texts by name, before they are parsed: what is not set is not there. */
export type Given = Record<string, string>

/** Kinds of setting that more than one subject has. */

export const port = z.coerce.number().int().min(0).max(65_535)
export const flag = z.enum(['true', 'false', '1', '0']).transform((text) => text === 'true' || text === '1')
export const url = z.url({ protocol: /^https?$/, error: 'is not an http(s) URL' })

/** The text of a file of PEM certificates; null where it cannot be read or holds none. */
export function certificatesIn(file: string): string | null {
  try {
    const text = readFileSync(file, 'utf8')
    return text.includes('-----BEGIN CERTIFICATE-----') ? text : null
  } catch {
    return null
  }
}

/** Would somebody on the way read what is said to this address? */
export function isReadable(address: string): boolean {
  return /^http:\/\/(?!localhost[:/]|127(\.\d+){3}[:/]|\[::1\])/.test(`${address}/`)
}

/** Where the processes listen, what they connect to, and how much they take on. */
export const processes = z.object({
  BOOTSTRAP_ADMIN_TOKEN: z.string().min(24, 'must have at least 24 characters').optional(),
  BOOTSTRAP_INGEST_TOKEN: z.string().min(24, 'must have at least 24 characters').optional(),
  CORE_API_URL: url.default('http://127.0.0.1:8080'),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'is not a postgresql:// URL')
    .optional(),
  QUEUE_INTERVAL_SECONDS: z.coerce.number().int().min(1).max(3_600).default(60),
  WATCHDOG_INTERVAL_SECONDS: z.coerce.number().min(0.2).max(3_600).default(30),
  PORT: port.default(8080),
  WORKER_PORT: port.default(8081),
  // See "What waiting costs" in docs/explanation/operations.md.
  WORKER_CACHED_WORKFLOWS: z.coerce.number().int().min(0).max(10_000).default(100),
  WORKER_WORKFLOW_THREADS: z.coerce.number().int().min(1).max(16).default(1),
  WORKER_ACTIVITY_SLOTS: z.coerce.number().int().min(1).max(500).default(50),
  HOST: z.string().default('127.0.0.1'),
  PUBLIC_URL: url.optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
})
