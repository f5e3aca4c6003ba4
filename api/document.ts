import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Env } from './hono.ts'

/** The document of every operation, as it is served. */
export function openApiDocument(app: OpenAPIHono<Env>): object {
  const document = app.getOpenAPI31Document({ openapi: '3.1.0', info: { title: 'Nightshift', version: '0.1.0' } })
  return boundIntegers(document) as object
}

/** Integers are those that every JSON reader has: what schemas refuse beyond them, the document says too. */
function boundIntegers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(boundIntegers)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).map(([key, entry]) => [key, boundIntegers(entry)] as const)
  const schema: Record<string, unknown> = Object.fromEntries(entries)
  if (schema.type === 'integer') {
    if (schema.exclusiveMaximum === undefined) schema.maximum ??= Number.MAX_SAFE_INTEGER
    if (schema.exclusiveMinimum === undefined) schema.minimum ??= Number.MIN_SAFE_INTEGER
  }
  return schema
}
