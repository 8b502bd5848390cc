// Opens a page in Chromium, asks in its only field, waits for something to appear, and prints what a reader then sees.
//
//	node drive_test.mjs MODULES CHROMIUM PAGE QUESTION SELECTOR
//
// MODULES is a node_modules that has playwright-core. An error in the page ends it with 1.
import { createRequire } from 'node:module'

const [modules, executablePath, address, question, selector] = process.argv.slice(2)
const { chromium } = createRequire(modules + '/')('playwright-core')
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
try {
  const page = await browser.newPage()
  page.on('pageerror', e => { console.error(e); process.exitCode = 1 })
  page.on('console', m => { if (m.type() === 'error' && !m.text().includes('favicon')) console.error(m.text(), m.location().url) })
  await page.goto(address)
  await page.fill('input', question)
  await page.press('input', 'Enter')
  await page.waitForSelector(selector, { timeout: 20_000 })
  console.log(await page.evaluate(() => document.body.innerText))
} finally {
  await browser.close()
}
