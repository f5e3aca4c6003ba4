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

export function Failed({ error, again }: { error: unknown; again?: () => void }) {
  const text = error instanceof Error ? error.message : 'Something failed.'
  const lost = error instanceof ApiProblem && error.status === 0
  return (
    <div className="said wrong stack" role="alert">
      <p>
        <strong>{text}</strong>
      </p>
      {lost && <p>Nothing was lost: everything is kept in the database.</p>}
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
