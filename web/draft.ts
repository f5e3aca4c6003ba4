import { useState } from 'react'

const prefix = 'draft '

/** Text that a person is writing: it outlives a reload and a crash of the page, in this tab alone, until it is sent or they sign out. */
export function useDraft(name: string): [text: string, write: (text: string) => void] {
  const [text, setText] = useState(() => read(name))
  const write = (next: string) => {
    setText(next)
    keep(name, next)
  }
  return [text, write]
}

/**
 * Once it is sent, what was written about a thing is no draft any more; and the next person who signs in in this tab is not shown what
 * another one was writing (`id` empty: all drafts).
 */
export function forgetDrafts(id = ''): void {
  try {
    const drafts = Object.keys(sessionStorage).filter((key) => key.startsWith(prefix) && key.endsWith(id))
    for (const key of drafts) sessionStorage.removeItem(key)
  } catch {
    // A browser that keeps nothing has nothing to forget.
  }
}

function read(name: string): string {
  try {
    return sessionStorage.getItem(prefix + name) ?? ''
  } catch {
    return ''
  }
}

function keep(name: string, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(prefix + name)
    else sessionStorage.setItem(prefix + name, text)
  } catch {
    // A browser that keeps nothing still lets one write.
  }
}
