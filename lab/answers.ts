import type { Context } from 'hono'
import type { z } from 'zod'
import { nameFaults } from '../domain/schema-faults.ts'

/** Parses the body of a request. Returns a 400 response that names the fault of an invalid body. */
export async function bodyOf<T>(c: Context, schema: z.ZodType<T>): Promise<T | Response> {
  let json: unknown
  try {
    json = JSON.parse((await c.req.text()) || '{}')
  } catch {
    return problem(c, 400, 'the body is not JSON')
  }
  const parsed = schema.safeParse(json)
  return parsed.success ? parsed.data : problem(c, 400, nameFaults(parsed.error))
}

const titles = {
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  413: 'Content Too Large',
  422: 'Unprocessable Content',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
} as const

/** Builds an error response, as problem+json. */
export function problem(c: Context, status: keyof typeof titles, detail: string): Response {
  return c.body(JSON.stringify({ type: 'about:blank', title: titles[status], status, detail }), status, {
    'content-type': 'application/problem+json',
  })
}
