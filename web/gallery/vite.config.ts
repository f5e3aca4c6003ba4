import { defineConfig } from 'vite'
import pages from '../vite.config.ts'

/** The parts of the pages on one page, built as these are. Not shipped: a browser test opens it. */
export default defineConfig({
  ...pages,
  root: import.meta.dirname,
  build: {
    ...pages.build,
    rolldownOptions: { ...pages.build?.rolldownOptions, input: `${import.meta.dirname}/gallery.html` },
  },
})
