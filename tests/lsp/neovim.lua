-- What Neovim shows of ranks, as JSON. It needs a screen, else it draws nothing.
-- INIT: the user's init.lua. PROGRAM: what is opened. REPORT: where the report goes.
-- LINE and WORD: what to hover over. OTHER: the line whose lens is followed.
local report = {}


local function wait(what, holds)
  if not vim.wait(30000, holds, 20) then
    error("no " .. what .. ": " .. vim.fn.execute("messages"))
  end
end

local function screen()
  vim.cmd.redraw()
  local lines = {}
  for row = 1, vim.o.lines do
    local text = ""
    for column = 1, vim.o.columns do
      text = text .. vim.fn.screenstring(row, column)
    end
    lines[row] = text:gsub("%s+$", "")
  end
  return lines
end

-- The marks on the screen, by the words in front of them.
local function marks()
  local found = {}
  for _, line in ipairs(screen()) do
    local code, mark = line:match("^%s*(.-)%s+(●.*)$")
    if code then
      found[code] = mark
    end
  end
  return found
end

local function floating()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= "" then
      return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, true)
    end
  end
end

-- Hover until every rank has answered: a hover waits a second for them, and a machine may be busy.
local function hovered()
  local found
  local asked, answered = 0, 0
  vim.api.nvim_create_autocmd("LspRequest", {
    callback = function(event)
      local request = event.data.request
      if request.method == "textDocument/hover" and request.type == "complete" then
        answered = answered + 1
      end
    end,
  })
  wait("hover of all ranks", function()
    vim.lsp.buf.hover()
    asked = asked + 1
    -- Asked again before that, a hover that is shown then would be entered by the second answer.
    wait("answer to a hover", function() return answered == asked end)
    if not vim.wait(1000, floating, 20) then
      return false
    end
    found = floating()
    if not table.concat(found, "\n"):find("no response from", 1, true) then
      return true
    end
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= "" then
        vim.api.nvim_win_close(window, true)
      end
    end
  end)
  return found
end

local function run()
  local line, other = tonumber(vim.env.LINE), tonumber(vim.env.OTHER)
  wait("hints", function() return vim.tbl_count(marks()) == 2 end)
  report.marks = marks()
  local text = vim.fn.getline(line)
  vim.api.nvim_win_set_cursor(0, { line, text:find(vim.env.WORD, 1, true) - 1 })
  report.hover = hovered()
  wait("problems", function() return #vim.diagnostic.get(0) > 0 end)
  report.problem = vim.diagnostic.get(0)[1].message
  vim.lsp.codelens.refresh()
  wait("lenses", function() return #vim.lsp.codelens.get(0) == 2 end)
  vim.api.nvim_win_set_cursor(0, { other, 0 })
  vim.lsp.codelens.run()
  wait("ranks at the lens", function()
    local _, mark = next(marks())
    return mark and mark:find("0-3", 1, true)
  end)
  report.after = marks()
end

-- Debian packs no parser for Markdown, without which Neovim shows no hover of any server.
if not pcall(vim.treesitter.language.add, "markdown") then
  vim.treesitter.start = function() end
end

vim.schedule(function()
  dofile(vim.env.INIT)
  vim.cmd.edit(vim.fn.fnameescape(vim.env.PROGRAM))
  local fine, failure = pcall(run)
  report.failure = not fine and tostring(failure) or nil
  report.screen = screen()
  vim.fn.writefile({ vim.json.encode(report) }, vim.env.REPORT)
  vim.cmd("qall!")
end)
