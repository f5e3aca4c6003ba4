import type { ReactNode } from 'react'
import { Inert } from '../inert.tsx'
import { Sign } from '../marks.tsx'

/** Shows one section of the card under its title. */
export function CardPart({ title, className, children }: { title: string; className?: string; children: ReactNode }) {
  return (
    <section className={className}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

/** Shows an important sentence with a shape and a word. Red is reserved for what is broken now. */
export function Warning({ text }: { text: string }) {
  return (
    <p className="warning">
      <Sign shape="triangle" /> <Inert text={text} />
    </p>
  )
}
