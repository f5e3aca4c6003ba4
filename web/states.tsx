import type { ReactNode } from 'react'
import { ApiProblem } from './api.ts'

/** What is shown where something would be: it is on its way, it failed, there is none. Each says what can be done. */
export function Loading({ what }: { what: string }) {
  return (
    <p className="nothing" role="status">
      Loading {what}…
    </p>
  )
}

/** `isKept`: what was read before is still shown; that the server is away is then said once, over the whole page. */
export function Failed({ error, again, isKept = false }: { error: unknown; again?: () => void; isKept?: boolean }) {
  const text = error instanceof Error ? error.message : 'Something failed.'
  const isAway = error instanceof ApiProblem && (error.status === 0 || error.status >= 502)
  if (isAway && isKept) return null
  return (
    <div className="said wrong stack" role="alert">
      <p>
        <strong>{text}</strong>
      </p>
      {again && (
        <p>
          <button type="button" onClick={again}>
            Try again
          </button>
        </p>
      )}
    </div>
  )
}

export function Nothing({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="nothing">
      <strong>{title}</strong>
      {children}
    </div>
  )
}
