// Read outputs with llama.cpp's own parser, as its server does: a request per line in, an answer per line out.
//
// A request is {"template": path, "tools": [...] or null, "thinking": bool, "deltas": [...]}. One delta is an answer that
// is not streamed. Of several, each is added to the text so far, which is parsed anew, and what has changed is sent. An
// answer has what the template prints before an output, too.
#include "chat.h"
#include "log.h"

#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

static common_chat_parser_params parser_for(const common_json & asked) {
    std::ifstream file(asked.at("template").get<std::string>());
    std::stringstream text;
    text << file.rdbuf();
    const auto templates = common_chat_templates_init(nullptr, text.str());
    common_chat_templates_inputs inputs;
    inputs.messages = common_chat_msgs_parse_oaicompat(
        common_json::parse(R"([{"role": "user", "content": "Go."}])"));
    inputs.tools = common_chat_tools_parse_oaicompat(asked.at("tools"));
    inputs.tool_choice = inputs.tools.empty() ? COMMON_CHAT_TOOL_CHOICE_NONE : COMMON_CHAT_TOOL_CHOICE_AUTO;
    inputs.parallel_tool_calls = true;
    inputs.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
    inputs.enable_thinking = asked.at("thinking").get<bool>();
    const auto made = common_chat_templates_apply(templates.get(), inputs);
    common_chat_parser_params params(made);
    params.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
    params.parse_tool_calls = !inputs.tools.empty();
    if (!made.parser.empty()) {
        params.parser.load(made.parser);
    }
    return params;
}

static common_json answer(const common_json & asked) {
    static std::map<std::string, common_chat_parser_params> made;  // a template is analysed for seconds
    const auto key = asked.at("template").dump() + asked.at("thinking").dump() + asked.at("tools").dump();
    if (made.find(key) == made.end()) {
        made[key] = parser_for(asked);
    }
    const auto & params = made[key];
    const auto & deltas = asked.at("deltas");
    common_chat_msg known, sent;
    std::string text;
    for (size_t at = 0; at < deltas.size(); at++) {
        text += deltas.at(at).get<std::string>();
        const auto said = common_chat_parse(text, at + 1 < deltas.size(), params);
        for (const auto & diff : common_chat_msg_diff::compute_diffs(known, said)) {
            sent.content += diff.content_delta;
            sent.reasoning_content += diff.reasoning_content_delta;
            if (diff.tool_call_index != std::string::npos) {
                sent.tool_calls.resize(std::max(sent.tool_calls.size(), diff.tool_call_index + 1));
                sent.tool_calls[diff.tool_call_index].name += diff.tool_call_delta.name;
                sent.tool_calls[diff.tool_call_index].arguments += diff.tool_call_delta.arguments;
            }
        }
        known = said;
    }
    auto calls = common_json::array();
    for (const auto & call : sent.tool_calls) calls.push_back(common_json::array({call.name, call.arguments}));
    return {{"content", sent.content},
            {"reasoning", sent.reasoning_content},
            {"calls", calls},
            {"prompt", params.generation_prompt}};
}

int main() {
    common_log_pause(common_log_main());
    for (std::string line; std::getline(std::cin, line);) {
        common_json said;
        try {
            said = answer(common_json::parse(line));
        } catch (const std::exception & error) {
            said = common_json{{"raised", error.what()}};
        }
        std::cout << said.dump_safe() << std::endl;
    }
}
