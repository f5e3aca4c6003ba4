import type { CoreAnswer, Envelope, ToolError } from '../domain/tool.ts'

/** What a call came to, in the one envelope that every tool answers and the model reads. */
export function toEnvelope(answer: CoreAnswer, meta: Record<string, unknown>): Envelope {
  if (answer.ok) return { ok: true, data: answer.data, meta }
  return {
    ok: false,
    error: {
      code: answer.problem.code ?? `HTTP_${answer.status}`,
      message: answer.problem.detail || answer.problem.title,
      blocked: answer.status === 401 || answer.status === 403 || answer.status === 412,
      failed: true,
      retryable: answer.status >= 500 || answer.status === 409 || answer.status === 429,
      details: { status: answer.status },
    },
    meta,
  }
}

/** A call that policy stopped: nothing was tried. */
export function blockedEnvelope(
  error: Pick<ToolError, 'code' | 'message' | 'details'>,
  meta: Record<string, unknown>,
): Envelope {
  return { ok: false, error: { ...error, blocked: true, failed: false, retryable: false }, meta }
}
